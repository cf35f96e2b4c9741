"""Text for people at a terminal and for programs: colours only where they can be seen."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tpu_matrix.matrix.status import Status

Part = tuple[str, str]
"""Text and its style; an empty style is plain."""

_STYLES: dict[Status, str] = {
    "pass": "green",
    "not-applicable": "dim",
    "never-run": "yellow",
    "stale": "yellow",
    "quarantined": "magenta",
    "blocked": "magenta",
    "infra-error": "magenta",
    "flaky": "red",
    "timeout": "red",
    "oom": "red",
    "fail": "red",
}

_GAP = "  "


def status_style(status: str) -> str:
    """Returns the colour of a status; empty for any other text."""
    return _STYLES.get(status, "")  # type: ignore[call-overload]


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Prints a table, one row a line however wide; statuses are coloured."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for number, line in enumerate(lines):
        parts: list[Part] = []
        for cell, width in zip(line, widths, strict=True):
            style = "bold" if number == 0 else status_style(cell)
            parts += [(cell, style), (" " * (width - len(cell)) + _GAP, "")]
        print_line(*parts[:-1])


def print_line(*parts: Part) -> None:
    """Prints one line of styled parts, never wrapped."""
    if not sys.stdout.isatty():
        print_plain("".join(text for text, _ in parts))
        return
    # rich costs 40 ms to import, which is worth it only where colours can be seen.
    from rich.console import Console
    from rich.text import Text

    Console(highlight=False).print(Text.assemble(*parts), soft_wrap=True)


def print_plain(*lines: object, to_stderr: bool = False) -> None:
    """Prints lines as they are, for editors, programs and people."""
    stream = sys.stderr if to_stderr else sys.stdout
    for line in lines:
        stream.write(f"{line}\n")


def print_json(data: Any) -> None:
    """Prints data as JSON for a program."""
    print_plain(json.dumps(data, indent=2))
