"""The demo from the model file to the rendered table, stage by stage."""

import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import openai
from rich.console import Console
from rich.text import Text
from vllm_torchtpu import envs

from demo.chat import Chat
from demo.checkpoint import SMOLLM2
from demo.conversion.cache import converted
from demo.errors import DemoError
from demo.findings import Findings
from demo.progress import Progress
from demo.proof import QUESTIONS, Reference, compare, running_reference, served_tokens
from demo.row import DemoRow, Run
from demo.server import Server, ServerTimeoutError, free_port, new_log

# Asked without "the name of", the model begins with "The" or "L" at nearly equal odds (0.1 apart in
# float32, less than bfloat16 can tell); so asked, each token of the answer is at least 0.6 ahead.
DEFAULT_QUESTION = "What is the name of the capital of France?"
EXPECTED_WORD = "Paris"

ROOT = Path(__file__).resolve().parents[1]
_VIRTUAL_DEVICE = "virtual TPU"  # as the platform names it
_MAX_ANSWER_TOKENS = 128


@dataclass(frozen=True)
class Options:
    """What the command line decides."""

    question: str = DEFAULT_QUESTION
    timeout_s: float = 600.0
    evidence: Path = ROOT / "evidence"


class Demo:
    """One run of the demo."""

    def __init__(self, options: Options, console: Console) -> None:
        """Reads the row; raises MatrixError if the matrix has none."""
        self._options = options
        self._console = console
        self._progress = Progress(console)
        self._row = DemoRow(ROOT, options.evidence)
        self._log = new_log(ROOT / "build" / "demo", "server")
        self._findings = Findings()

    def run(self) -> None:
        """Serves the model, asks, validates, stops, records and renders.

        Raises:
            DemoError: Something failed; every problem is in the message.
            MatrixError: The matrix does not take the record; the message says why.
        """
        with self._progress.phase(f"Preparing {SMOLLM2.name}"):
            model = converted(SMOLLM2, envs.load().cache_dir)
        started = datetime.now(UTC)
        findings = self._findings
        try:
            with running_reference(model) as reference:
                self._serve(model, reference)
        except ServerTimeoutError as error:
            findings.timed_out = True
            findings.problems.append(str(error))
        except (DemoError, openai.OpenAIError) as error:
            findings.problems.append(str(error))
        self._conclude(started)
        if findings.problems:
            raise DemoError("\n".join(findings.problems))

    def _serve(self, model: Path, reference: Reference) -> None:
        port = free_port()
        server = Server(self._row.serve_argv(model, port), port, self._log)
        self._console.print(
            Text(f"$ {shlex.join(['vllm', *server.argv[1:]])}", style="dim"), soft_wrap=True
        )
        with server:
            with self._progress.phase("Starting vLLM"):
                self._findings.start_up_s = server.wait_until_healthy(
                    self._options.timeout_s, self._progress.detail
                )
            chat = Chat(server.url, self._row.checkpoint)
            self._ask(chat)
            with self._progress.phase("Comparing with transformers in float32"):
                self._validate(chat, reference)
            with self._progress.phase("Stopping vLLM"):
                self._findings.ending = server.stop()
            self._findings.problems += self._findings.ending.problems()

    def _ask(self, chat: Chat) -> None:
        print_answer = self._console.print
        print_answer(Text.assemble("\n", ("Question: ", "bold"), self._options.question))
        print_answer(Text("Answer:   ", style="bold"), end="")
        answer = chat.stream(
            self._options.question,
            _MAX_ANSWER_TOKENS,
            lambda piece: print_answer(Text(piece), end="", soft_wrap=True),
        )
        print_answer("\n")
        self._findings.answer = answer
        if self._options.question != DEFAULT_QUESTION:
            # The validation does not depend on what the user asks.
            answer = chat.stream(DEFAULT_QUESTION, _MAX_ANSWER_TOKENS, lambda _: None)
        self._findings.names_expected_word = EXPECTED_WORD in answer.text
        if not self._findings.names_expected_word:
            self._findings.problems.append(
                f"demo: the answer to {DEFAULT_QUESTION!r} is {answer.text!r}, without the word "
                f"{EXPECTED_WORD}; compare the engine with transformers"
            )

    def _validate(self, chat: Chat, reference: Reference) -> None:
        served = served_tokens(chat)
        comparison = compare(QUESTIONS, served, reference.result(self._options.timeout_s))
        self._findings.comparison = comparison
        self._findings.problems += comparison.differences

    def _conclude(self, started: datetime) -> None:
        """Prints the numbers; records and renders what ran on a virtual TPU."""
        self._print_numbers()
        device = self._log.device()
        if device != _VIRTUAL_DEVICE:
            found = (
                f"vLLM ran on a {device}, not a {_VIRTUAL_DEVICE}"
                if device
                else "vLLM named no device"
            )
            self._console.print(f"No evidence recorded: {found}.", soft_wrap=True)
            return
        self._row.record(
            Run(
                outcome=self._findings.outcome,
                reason=self._findings.reason,
                metrics=self._findings.metrics(self._log),
                devices=1,
                started=started,
                finished=datetime.now(UTC),
                log=self._log.path,
            )
        )
        self._row.print_status()
        page = self._row.render(ROOT / "build" / "support-matrix")
        self._console.print(Text(f"Table with this run: {page.relative_to(ROOT)}", style="bold"))

    def _print_numbers(self) -> None:
        for label, text in self._findings.summary(self._log):
            self._console.print(Text.assemble((f"{label:<11}", "bold"), text), soft_wrap=True)
        self._console.print()
