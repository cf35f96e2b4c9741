"""The evidence store: JSON Lines that only grow, whatever happens to their writers.

One file per month, named after the month in which a run started, so that looking for a
duplicate reads one file.  Writers hold an exclusive `flock` on that file; a line is
written with one system call and synced.  What a crash leaves of a line is moved to
`<file>.truncated` by the next writer, never deleted.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import mmap
import os
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

from pydantic import ValidationError

from tpu_matrix.errors import MatrixError, RefusedRecordError
from tpu_matrix.evidence.record import Record, StoredRecord
from tpu_matrix.matrix.finding import Finding, Location
from tpu_matrix.matrix.validation import describe

_SUFFIX = ".jsonl"
_RESCUE_SUFFIX = ".truncated"


@dataclasses.dataclass(frozen=True)
class Evidence:
    """What a store holds: the records that can be read, and the lines that cannot."""

    records: tuple[Record, ...]
    findings: tuple[Finding, ...] = ()


@dataclasses.dataclass(frozen=True)
class EvidenceStore:
    """A directory of evidence; a missing directory is an empty store."""

    directory: Path

    def append(self, record: Record) -> bool:
        """Adds a record; returns False if this very record is already there.

        Raises:
            RefusedRecordError: the same run was recorded with other content.
            MatrixError: the store cannot be written.
        """
        month = record.started.astimezone(UTC).strftime("%Y-%m")
        path = self.directory / f"{month}{_SUFFIX}"
        line = record.to_line()
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            with _locked(path) as descriptor:
                _repair(path, descriptor)
                present = _find(descriptor, record.id)
                if present is None:
                    _write(descriptor, line)
        except OSError as error:
            found = f"the evidence cannot be written ({error.strerror or error})"
            raise MatrixError(
                path, found, "make the directory writable or give --evidence"
            ) from None
        if present is not None and present != line.rstrip(b"\n"):
            raise RefusedRecordError(
                path,
                ["this run is already recorded with other content"],
                "give a repeated run another attempt number",
            )
        return present is None

    def read(self) -> Evidence:
        """Returns everything in the store, oldest file first."""
        records: list[Record] = []
        findings: list[Finding] = []
        for path in sorted(self.directory.glob(f"*{_SUFFIX}")):
            evidence = read_file(path)
            records += evidence.records
            findings += evidence.findings
        return Evidence(tuple(records), tuple(findings))


def read_file(path: Path) -> Evidence:
    """Returns the records of one JSON Lines file; unreadable lines become findings."""
    try:
        with path.open("rb") as file:
            # Shared: a writer's half-written line must not look like a crashed one.
            fcntl.flock(file, fcntl.LOCK_SH)
            content = file.read()
    except FileNotFoundError:
        return Evidence(())
    except OSError as error:
        found = f"the evidence cannot be read ({error.strerror or error})"
        raise MatrixError(path, found, "make it a readable file") from None
    records, findings = [], []
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line:
            continue
        try:
            records.append(StoredRecord.model_validate_json(line))
        except ValidationError as error:
            findings.append(_unreadable(path, number, line, content, error))
    return Evidence(tuple(records), tuple(findings))


def _unreadable(
    path: Path, number: int, line: bytes, content: bytes, error: ValidationError
) -> Finding:
    where = Location(path, number)
    if content.endswith(line):
        return Finding(
            where,
            "TM050",
            "the last line is cut off and does not count",
            "record a run to repair it",
        )
    reasons = "; ".join(describe(StoredRecord, error))
    return Finding(where, "TM050", f"not a record: {reasons}", "restore the line as it was written")


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[int]:
    is_new = not path.exists()
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if is_new:
            _sync_directory(path.parent)
        yield descriptor
    finally:
        os.close(descriptor)


def _repair(path: Path, descriptor: int) -> None:
    """Ends the file with a complete line, keeping what a crash left of another."""
    size = os.fstat(descriptor).st_size
    if size == 0 or os.pread(descriptor, 1, size - 1) == b"\n":
        return
    start = _last_line_start(descriptor, size)
    tail = os.pread(descriptor, size - start, start)
    try:
        StoredRecord.model_validate_json(tail)
    except ValidationError:
        # The copy is safe on disk before the original goes.
        rescue = os.open(f"{path}{_RESCUE_SUFFIX}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            _write(rescue, tail + b"\n")
        finally:
            os.close(rescue)
        os.ftruncate(descriptor, start)
        os.fsync(descriptor)
    else:
        _write(descriptor, b"\n")


def _last_line_start(descriptor: int, size: int) -> int:
    step = 1 << 16
    end = size
    while end > 0:
        start = max(0, end - step)
        newline = os.pread(descriptor, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def _find(descriptor: int, record_id: str) -> bytes | None:
    size = os.fstat(descriptor).st_size
    if size == 0:
        return None
    with mmap.mmap(descriptor, size, access=mmap.ACCESS_READ) as view:
        start = view.find(f'{{"id":"{record_id}"'.encode("ascii"))
        return None if start < 0 else view[start : view.find(b"\n", start)]


def _write(descriptor: int, content: bytes) -> None:
    before = os.fstat(descriptor).st_size
    try:
        written = os.write(descriptor, content)
        if written != len(content):
            raise OSError(f"only {written} of {len(content)} bytes were written")
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, before)
        raise


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
