"""One-sentence errors, and the place where they become an exit without a traceback.

Sentences read `<where>: <what was found>; <what to do>`.
"""

from collections.abc import Iterator
from contextlib import contextmanager


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
