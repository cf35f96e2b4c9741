"""What one run of the demo found, and what it amounts to."""

from dataclasses import dataclass, field

from tpu_matrix.evidence.record import Outcome

from demo.chat import Answer
from demo.proof import Comparison
from demo.server import Ending
from demo.server_log import ServerLog

_REASON_CHARACTERS = 1000


@dataclass
class Findings:
    """Filled stage by stage; a stage that was not reached leaves its part empty."""

    start_up_s: float | None = None
    answer: Answer | None = None
    names_expected_word: bool = False
    comparison: Comparison | None = None
    ending: Ending | None = None
    timed_out: bool = False
    problems: list[str] = field(default_factory=list)

    @property
    def outcome(self) -> Outcome:
        """A pass only if every stage was reached and none had a problem."""
        if self.timed_out:
            return "timeout"
        reached = self.names_expected_word and self.comparison and self.ending
        return "pass" if reached and not self.problems else "fail"

    @property
    def reason(self) -> str | None:
        """The first problem in one line, for the evidence record."""
        if not self.problems:
            return None
        return self.problems[0].partition("\n")[0][:_REASON_CHARACTERS]

    def metrics(self, log: ServerLog) -> dict[str, float]:
        """Returns the numbers of the evidence record; what was not measured is left out."""
        numbers: dict[str, float] = {"demo.expected_answers": float(self.names_expected_word)}
        if self.comparison is not None:
            numbers["demo.compared_tokens"] = self.comparison.compared
            numbers["demo.matching_tokens"] = self.comparison.matching
        if (warm_up := log.warm_up()) is not None:
            numbers["serve.graphs"] = warm_up.graphs
            numbers["serve.warm_up_s"] = warm_up.seconds
        if self.start_up_s is not None:
            numbers["serve.start_up_s"] = self.start_up_s
        if self.answer is not None:
            numbers["serve.first_token_s"] = self.answer.first_token_s
            if self.answer.tokens_per_s is not None:
                numbers["serve.tokens_per_s"] = self.answer.tokens_per_s
        if self.ending is not None:
            numbers["serve.stop_s"] = self.ending.seconds
        return {name: round(value, 3) for name, value in numbers.items()}

    def summary(self, log: ServerLog) -> list[tuple[str, str]]:
        """Returns what people want to read of it, as labels and texts."""
        lines = []
        if (answer := self.answer) is not None:
            speed = f"{answer.tokens_per_s:.1f}" if answer.tokens_per_s is not None else "unknown"
            lines.append(
                (
                    "Tokens/s",
                    f"{speed} ({answer.tokens} tokens, the first after {answer.first_token_s:.2f} s)",
                )
            )
        if (warm_up := log.warm_up()) is not None:
            lines.append(
                ("Graphs", f"{warm_up.graphs}, ready after {warm_up.seconds:.1f} s of warm-up")
            )
        if self.start_up_s is not None:
            lines.append(
                ("Start-up", f"{self.start_up_s:.1f} s from the command to the first request")
            )
        if (found := self.comparison) is not None:
            equal = (
                f"{found.matching} of {found.compared} greedy tokens equal transformers in float32"
            )
            lines.append(("Reference", equal))
        if self.ending is not None:
            lines.append(
                (
                    "Shutdown",
                    f"exit code {self.ending.exit_code}, {len(self.ending.orphans)} orphans",
                )
            )
        return lines
