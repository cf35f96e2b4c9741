"""Errors that end a command with one sentence and an exit code, never a traceback."""

from __future__ import annotations

import enum


class ExitCode(enum.IntEnum):
    """What the process tells its caller."""

    FINE = 0
    FINDINGS = 1
    USAGE = 2


class MatrixError(Exception):
    """Stops a command; the message reads `<where>: <what was found>; <what to do>`."""

    exit_code = ExitCode.USAGE

    def __init__(self, where: object, found: str, remedy: str) -> None:
        self.where = str(where)
        self.found = found
        self.remedy = remedy
        super().__init__(f"{self.where}: {found}; {remedy}")


class UnusableMatrixError(MatrixError):
    """The claims have findings that leave nothing to answer from."""

    exit_code = ExitCode.FINDINGS


class RefusedRecordError(MatrixError):
    """A record of a run was not admitted to the evidence; every reason is in `reasons`."""

    exit_code = ExitCode.FINDINGS

    def __init__(self, where: object, reasons: list[str], remedy: str) -> None:
        self.reasons = reasons
        found = reasons[0] if len(reasons) == 1 else f"refused for {len(reasons)} reasons"
        listed = reasons if len(reasons) > 1 else []
        super().__init__(where, found, "\n  - ".join([remedy, *listed]))
