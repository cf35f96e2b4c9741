"""Text for people at a terminal: tables, findings, colours only where they can be seen."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tpu_matrix.matrix.status import Status

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

_WIDTH_WITHOUT_TERMINAL = 1000


def _console() -> Any:
    # rich costs 40 ms to import, which `--json` does not need to pay.
    from rich.console import Console

    width = None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL
    return Console(file=sys.stdout, width=width, highlight=False, markup=False, emoji=False)


def print_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], status_from: int = 99
) -> None:
    """Prints a table; columns from `status_from` on hold statuses and are coloured."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in header:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(
            *(
                Text(cell, style=status_style(cell)) if index >= status_from else Text(cell)
                for index, cell in enumerate(row)
            )
        )
    _console().print(table)


def print_line(*parts: tuple[str, str] | str) -> None:
    """Prints one line of parts, each plain or with a style, never wrapped."""
    from rich.text import Text

    _console().print(Text.assemble(*parts), soft_wrap=True)


def print_plain(*lines: object, to_stderr: bool = False) -> None:
    """Prints lines as they are, for editors, programs and people."""
    stream = sys.stderr if to_stderr else sys.stdout
    for line in lines:
        stream.write(f"{line}\n")


def print_json(data: Any) -> None:
    """Prints data as JSON for a program."""
    print_plain(json.dumps(data, indent=2))


def status_style(status: str) -> str:
    """Returns the colour of a status; empty for any other text."""
    return _STYLES.get(status, "")  # type: ignore[call-overload]
