"""Reads what a vLLM server wrote: its latest message, its device and its warm-up."""

import re
from dataclasses import dataclass
from pathlib import Path

_TAIL_BYTES = 16_384
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_MESSAGE = re.compile(
    r"^(?:\([^)]*\) )*(?:INFO|WARNING|ERROR|CRITICAL) [\d-]+ [\d:]+ \[[^\]]*\] (?P<text>.*\w.*)$"
)
# Written by vllm_torchtpu's worker and warm-up.
_DEVICE = re.compile(r"Memory of the (?P<name>[^:]+): ")
_WARM_UP = re.compile(
    r"torchtpu: warm-up finished: graphs=(?P<graphs>\d+).* seconds=(?P<seconds>[\d.]+)"
)


@dataclass(frozen=True)
class WarmUp:
    """What the worker says after it has compiled every graph."""

    graphs: int
    seconds: float


@dataclass(frozen=True)
class ServerLog:
    """The file that holds a server's standard output and standard error."""

    path: Path

    def last_message(self) -> str | None:
        """Returns the text of the latest log line that says something, without its prefix."""
        for line in reversed(self.tail(100)):
            if match := _MESSAGE.match(line):
                return match["text"].strip()
        return None

    def tail(self, lines: int) -> list[str]:
        """Returns the last lines that are not blank, without colours."""
        with self.path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
        # A progress bar overwrites its line: only what it showed last is left.
        shown = (_COLOUR.sub("", line.rsplit("\r", 1)[-1]) for line in text.split("\n"))
        return [line.rstrip() for line in shown if line.strip()][-lines:]

    def device(self) -> str | None:
        """Returns the worker's name of the device that it serves on; None before it knows."""
        match = _DEVICE.search(self._text())
        return match["name"] if match else None

    def warm_up(self) -> WarmUp | None:
        """Returns the worker's summary of its warm-up; None before it has ended."""
        match = _WARM_UP.search(self._text())
        return WarmUp(int(match["graphs"]), float(match["seconds"])) if match else None

    def _text(self) -> str:
        return _COLOUR.sub("", self.path.read_text(encoding="utf-8", errors="replace"))
