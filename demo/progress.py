"""Shows what the demo waits for: a spinner on a terminal, plain lines elsewhere."""

import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.status import Status
from rich.text import Text

_PLAIN_INTERVAL_S = 15.0
_PLAIN_WIDTH = 120


class Progress:
    """One phase at a time, each with its latest detail and, at the end, its seconds."""

    def __init__(self, console: Console) -> None:
        """Writes to ``console``."""
        self._console = console
        self._title = self._said = ""
        self._status: Status | None = None
        self._said_at = 0.0

    @contextmanager
    def phase(self, title: str) -> Iterator[None]:
        """Shows ``title`` for as long as the block lasts, then how long that was."""
        start = time.monotonic()
        self._title, self._said_at = title, start
        if self._console.is_terminal:
            with self._console.status(Text(title)) as self._status:
                yield
            self._status = None
        else:
            self._console.print(f"{title} ...")
            yield
        self._console.print(Text(f"{title}: {time.monotonic() - start:.1f} s", style="dim"))

    def detail(self, text: str) -> None:
        """Shows the latest of what happens inside the phase."""
        if self._status is not None:
            line = Text(f"{self._title}: ", no_wrap=True, overflow="ellipsis").append(text, "dim")
            line.truncate(max(20, self._console.width - 4), overflow="ellipsis")
            self._status.update(line)
        elif text != self._said and time.monotonic() - self._said_at > _PLAIN_INTERVAL_S:
            self._said, self._said_at = text, time.monotonic()
            shown = textwrap.shorten(text, _PLAIN_WIDTH, placeholder=" ...")
            self._console.print(Text(f"  {shown}"), soft_wrap=True)
