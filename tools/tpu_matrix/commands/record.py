"""`tpu-matrix record`: one run into the evidence, or the reasons why not."""

from __future__ import annotations

import sys
from pathlib import Path

from tpu_matrix.commands.workspace import Workspace, shown, utc_now
from tpu_matrix.errors import ExitCode, MatrixError
from tpu_matrix.render.terminal import print_json, print_plain


def run(workspace: Workspace, file: Path | None, as_json: bool) -> ExitCode:
    """Reads a record from a file, or from stdin without one, and admits it."""
    from tpu_matrix.evidence.admission import record_evidence

    matrix = workspace.sound_matrix()
    where = "stdin" if file is None or str(file) == "-" else shown(file)
    record, is_new = record_evidence(_read(file), matrix, workspace.store, utc_now(), where)
    if as_json:
        print_json({"id": record.id, "row_id": record.row_id, "new": is_new})
    else:
        verb = "recorded" if is_new else "already recorded"
        directory = shown(workspace.store.directory)
        print_plain(f"{verb}: {record.kind} {record.outcome} for {record.row_id} in {directory}")
    return ExitCode.FINE


def _read(file: Path | None) -> bytes:
    if file is None or str(file) == "-":
        if sys.stdin.isatty():
            raise MatrixError(
                "stdin", "there is no record", "give FILE, or pipe one JSON record in"
            )
        return sys.stdin.buffer.read()
    try:
        return file.read_bytes()
    except OSError as error:
        found = f"the record cannot be read ({error.strerror or error})"
        raise MatrixError(file, found, "give the path of one JSON record") from None
