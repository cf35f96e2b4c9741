"""A finding: one mistake in the data, where it is, and what to do about it."""

from __future__ import annotations

import dataclasses
from pathlib import Path


@dataclasses.dataclass(frozen=True, order=True)
class Location:
    """A place in a file; `line` and `column` count from one."""

    path: Path
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.shown_path}:{self.line}:{self.column}"

    @property
    def shown_path(self) -> str:
        """The path relative to the working directory where it lies below it."""
        try:
            return str(self.path.relative_to(Path.cwd()))
        except ValueError:
            return str(self.path)


@dataclasses.dataclass(frozen=True, order=True)
class Finding:
    """One mistake, printed as `file:line:column CODE message; what to do`."""

    location: Location
    code: str
    message: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.location} {self.code} {self.message}; {self.remedy}"

    def as_json(self) -> dict[str, object]:
        """Returns the finding as JSON-ready data."""
        return {
            "file": self.location.shown_path,
            "line": self.location.line,
            "column": self.location.column,
            "code": self.code,
            "message": self.message,
            "remedy": self.remedy,
        }
