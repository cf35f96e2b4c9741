"""A contender is a process that loads its model once, then runs repetitions on request.

Requests and answers are lines on its standard input and output. Whatever its libraries print goes
to its standard error, which the parent keeps in a log file.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks.workload import Repetition, Workload

_ROOT = Path(__file__).resolve().parents[1]
_READY = "ready"
_STOP_TIMEOUT_S = 60.0


class ContenderError(Exception):
    """A contender ended before it answered: ``<where>: <what was found>; <what to do>``."""


class Contender:
    """The parent's side; as a context manager it never outlives its block."""

    def __init__(self, module: str, workload: Workload, log: Path) -> None:
        """Prepares ``python -m module`` with the workload as its arguments."""
        self.module = module
        self._log = log
        self._argv = [
            sys.executable,
            "-m",
            module,
            str(workload.model),
            workload.dtype,
            str(workload.new_tokens),
        ]
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        """Starts the process and waits until its model is loaded and warm.

        Raises:
            ContenderError: It ended before that.
        """
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._argv,
                cwd=_ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        try:
            self._answer()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Ends the process."""
        self._end()

    @property
    def exit_code(self) -> int | None:
        """How the process ended; None while it runs."""
        return self._process.poll() if self._process else None

    def repeat(self) -> Repetition:
        """Runs the workload once.

        Raises:
            ContenderError: The process ended instead.
        """
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        return Repetition(**json.loads(self._answer()))

    def _answer(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            code = self._process.wait()
            raise ContenderError(
                f"{self.module}: it ended with exit code {code}; read its log, {self._log}"
            )
        return line

    def _end(self) -> None:
        """Closes its input, which it takes as the end, and kills it if it does not go."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        finally:
            assert self._process.stdout is not None
            self._process.stdout.close()


def serve(
    prepare: Callable[[Workload], Callable[[], Repetition]], arguments: Sequence[str]
) -> None:
    """The child's side: prepares once, then runs a repetition for each line of its input."""
    # Answers have a descriptor of their own; descriptor 1 becomes the log's, for all libraries.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    model, dtype, new_tokens = arguments
    run = prepare(Workload(Path(model), dtype, int(new_tokens)))
    answers.write(f"{_READY}\n")
    for _ in sys.stdin:
        answers.write(f"{json.dumps(asdict(run()))}\n")
