"""What every verb starts from: the matrix, the evidence and the time."""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
from pathlib import Path
from typing import TYPE_CHECKING

from tpu_matrix.errors import ExitCode, MatrixError, UnusableMatrixError
from tpu_matrix.matrix import suggestion
from tpu_matrix.matrix.load import Loaded, find_root, load
from tpu_matrix.render.terminal import print_plain
from tpu_matrix.wording import counted

if TYPE_CHECKING:
    from tpu_matrix.evidence.record import Record
    from tpu_matrix.evidence.store import Evidence, EvidenceStore
    from tpu_matrix.matrix.claims import Matrix, SourcedRow


@dataclasses.dataclass(frozen=True)
class Workspace:
    """The places that the options name, read when first needed."""

    matrix_option: Path | None = None
    evidence_option: Path | None = None

    @functools.cached_property
    def root(self) -> Path:
        """The matrix directory."""
        return find_root(self.matrix_option)

    @functools.cached_property
    def loaded(self) -> Loaded:
        """The claims, with the findings of reading them."""
        return load(self.root)

    @property
    def matrix(self) -> Matrix:
        """The claims that could be read."""
        return self.loaded.matrix

    @property
    def store(self) -> EvidenceStore:
        """The evidence directory, beside the matrix unless named."""
        from tpu_matrix.evidence.store import EvidenceStore

        return EvidenceStore(self.evidence_option or self.root.parent / "evidence")

    @property
    def docs(self) -> Path:
        """Where the pages are."""
        return self.root.parent / "docs" / "support-matrix"

    def sound_matrix(self) -> Matrix:
        """Returns the claims.

        Raises:
            UnusableMatrixError: part of them could not be read.
        """
        if self.loaded.findings:
            print_plain(*self.loaded.findings, to_stderr=True)
            found = f"the claims have {counted(len(self.loaded.findings), 'finding')}"
            raise UnusableMatrixError(self.root, found, "correct what `tpu-matrix lint` reports")
        return self.matrix

    def row(self, name: str) -> SourcedRow:
        """Returns a row by its slug or stable id.

        Raises:
            MatrixError: there is no such row, or it is another one by now.
        """
        slug = name.partition(":")[0]
        row = self.matrix.by_slug.get(slug)
        if row is None:
            remedy = suggestion.remedy(slug, self.matrix.by_slug, "row")
            raise MatrixError("ROW", f"there is no row {slug!r}", remedy)
        if ":" in name and name != row.id:
            raise MatrixError("ROW", f"{name!r} has changed", f"it is now {row.id!r}")
        return row

    def evidence(self) -> Evidence:
        """Returns the store's records and the snapshot's, each run once."""
        from tpu_matrix.evidence.store import Evidence, read_file

        stored, committed = self.store.read(), read_file(self.matrix.snapshot)
        # By content, not by id: two versions of one run must both be seen, and the worse counts.
        unique: dict[bytes, Record] = {
            r.to_line(): r for r in (*committed.records, *stored.records)
        }
        return Evidence(tuple(unique.values()), committed.findings + stored.findings)

    def warn(self, *more: object) -> ExitCode:
        """Prints what could not be read to stderr; returns the code that says so."""
        findings = [*self.loaded.findings, *more]
        print_plain(*findings, to_stderr=True)
        return ExitCode.FINDINGS if findings else ExitCode.FINE


def utc_now() -> dt.datetime:
    """Returns the present time, with its zone."""
    return dt.datetime.now(dt.UTC)


def shown(path: Path) -> str:
    """Returns a path relative to the working directory where it lies below it."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
