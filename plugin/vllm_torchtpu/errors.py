"""One-sentence errors, and the place where they become an exit without a traceback.

Sentences read `<where>: <what was found>; <what to do>`.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType


class TorchTpuError(RuntimeError):
    """A condition that the user can mend; its text is the one sentence to show."""


def raise_all(problems: list[str]) -> None:
    """Raises one `TorchTpuError` that carries every problem, one a line; none is no error."""
    if problems:
        raise TorchTpuError("\n".join(problems))


@contextmanager
def exit_with_sentence() -> Iterator[None]:
    """Turns a `TorchTpuError` into `SystemExit` with its sentence.

    For the outermost call of ours in a process. vLLM logs and forgets an `Exception` of a platform
    plugin, but lets `SystemExit` through; Python then prints the sentence alone, to standard error,
    and exits with status 1.
    """
    try:
        yield
    except TorchTpuError as error:
        raise SystemExit(str(error)) from None


def show_sentences() -> None:
    """Lets an uncaught `TorchTpuError` end the program with its sentence and no traceback.

    Where vLLM builds its configuration, `vllm serve` and a script that makes an `LLM` have no
    handler of their own. Every other exception is shown as before.
    """
    if getattr(sys.excepthook, "_shows_sentences", False):
        return
    previous = sys.excepthook

    def hook(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, TorchTpuError):
            print(error, file=sys.stderr)
        else:
            previous(kind, error, traceback)

    hook._shows_sentences = True  # type: ignore[attr-defined]
    sys.excepthook = hook
