"""The command line of the demo."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from tpu_matrix.errors import MatrixError
from vllm_torchtpu.errors import TorchTpuError

from demo.errors import DemoError
from demo.run import DEFAULT_QUESTION, Demo, Options

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

_EXIT_FAILED = 1
_EXIT_SIGNAL = 128


@app.command(epilog="Example: make demo ARGS=\"--question 'Why is the sky blue?'\"")
def serve_and_ask(
    question: Annotated[
        str, typer.Option("--question", "-q", help="What to ask the model.")
    ] = DEFAULT_QUESTION,
    timeout: Annotated[
        float, typer.Option(min=1.0, metavar="SECONDS", help="How long vLLM may take to start.")
    ] = Options.timeout_s,
    evidence: Annotated[
        Path,
        typer.Option(
            metavar="DIR", show_default="evidence/", help="Where the record of this run goes."
        ),
    ] = Options.evidence,
) -> None:
    """Serve SmolLM2-135M-Instruct with vLLM on the virtual TPU, ask it, and record the run.

    The model answers over the OpenAI API. Its tokens are compared with those of transformers, and
    the result becomes evidence for the row smollm2-135m-instruct of the support matrix.
    """
    with _failing_in_a_sentence():
        Demo(Options(question, timeout, evidence), Console(highlight=False)).run()


def main() -> None:
    """Runs the command line; SIGTERM stops the server as Ctrl-C does."""
    signal.signal(signal.SIGTERM, _exit_by_signal)
    # A shell starts its background jobs with this signal ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    app()


@contextmanager
def _failing_in_a_sentence() -> Iterator[None]:
    """Turns a failure into its sentence (one per problem) and exit code 1, without a traceback."""
    try:
        yield
    except (DemoError, MatrixError, TorchTpuError) as error:
        print(error, file=sys.stderr)
        sys.exit(_EXIT_FAILED)
    except KeyboardInterrupt:
        # Whatever was started has been stopped on the way here.
        print("\ndemo: interrupted; nothing was recorded", file=sys.stderr)
        sys.exit(_EXIT_SIGNAL + signal.SIGINT)


def _exit_by_signal(number: int, frame: FrameType | None) -> NoReturn:
    del frame
    sys.exit(_EXIT_SIGNAL + number)
