"""The matrix row that the demo validates: its command, its evidence, its status and its table."""

import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tpu_matrix.commands import status as status_command
from tpu_matrix.commands.workspace import Workspace
from tpu_matrix.evidence.admission import record_evidence
from tpu_matrix.evidence.record import VIRTUAL_DEVICE_KIND, Detected, Outcome, Record
from tpu_matrix.matrix.command import serve_argv
from tpu_matrix.render import output
from tpu_matrix.render.pages import render_pages

from demo import provenance
from demo.server import HOST

ROW = "smollm2-135m-instruct"
PRODUCER = "make demo"


@dataclass(frozen=True)
class Run:
    """What one run of the row found."""

    outcome: Outcome
    reason: str | None
    metrics: dict[str, float]
    devices: int
    started: datetime
    finished: datetime
    log: Path


class DemoRow:
    """Row ROW of a checkout's matrix, with its evidence."""

    def __init__(self, root: Path, evidence: Path, name: str = ROW) -> None:
        """Reads the claims of the checkout at ``root``; records go to the directory ``evidence``.

        Raises:
            MatrixError: The claims cannot be read, or they have no such row.
        """
        self.root = root
        self._workspace = Workspace(root / "support_matrix", evidence)
        self._matrix = self._workspace.sound_matrix()
        self._row = self._workspace.row(name)
        self.id = self._row.id
        self.checkpoint = self._row.item.checkpoint

    def serve_argv(self, model: Path, port: int) -> list[str]:
        """Returns the row's exact command; the model's path and the port alone differ.

        The program is that of this Python environment, whatever the PATH says.
        """
        program, *arguments = serve_argv(
            self._row.item,
            self._row.features,
            model_path=str(model),
            extra=("--host", HOST, "--port", str(port)),
        )
        return [str(Path(sys.executable).parent / program), *arguments]

    def record(self, run: Run) -> Record:
        """Appends the run to the evidence.

        Raises:
            RefusedRecordError: It proves nothing about the row; the sentence says why.
        """
        record = Record(
            row_id=self._row.id,
            args_hash=self._row.args_hash,
            kind="virtual",
            outcome=run.outcome,
            reason=run.reason,
            checkpoint=self.checkpoint,
            metrics=run.metrics,
            commit=provenance.commit(self.root),
            versions=provenance.versions(),
            detected=Detected(device_kind=VIRTUAL_DEVICE_KIND, devices=run.devices),
            started=run.started,
            finished=run.finished,
            log=str(run.log.relative_to(self.root)),
            producer=PRODUCER,
        )
        now = datetime.now(UTC)
        data = record.model_dump_json(exclude_none=True)
        return record_evidence(data, self._matrix, self._workspace.store, now, PRODUCER)[0]

    def print_status(self) -> None:
        """Prints what ``tpu-matrix status`` prints for the row."""
        now = datetime.now(UTC)
        status_command.run(self._workspace, self._row.slug, now, None, as_json=False)

    def render(self, directory: Path) -> Path:
        """Renders all pages, this evidence included; returns the path of the row's page."""
        pages = render_pages(self._matrix, self._workspace.evidence().records)
        output.write({directory / name: page for name, page in pages.items()})
        return directory / f"{self._row.family}.md"
