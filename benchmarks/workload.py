"""What both sides of a benchmark compute, and what one repetition of it found."""

from dataclasses import dataclass
from pathlib import Path

# Different lengths, as requests have; all of them prefill in one step.
QUESTIONS = (
    "What is the capital of France?",
    "Name three animals that live in the sea.",
    "Why is the sky blue?",
    "Write one sentence about a lighthouse keeper.",
    "What is a compiler? Explain it to a child in a few words.",
    "Translate 'good morning' into French, Spanish and Italian.",
    "List the planets of the solar system in order from the sun.",
    "How do I boil an egg so that the yolk stays soft?",
)


@dataclass(frozen=True)
class Workload:
    """Greedy continuations of all QUESTIONS at once, each by exactly ``new_tokens`` tokens.

    ``dtype`` is a name of torch's, such as ``float32``.
    """

    model: Path
    dtype: str
    new_tokens: int

    @property
    def tokens(self) -> int:
        """Tokens that one repetition generates."""
        return len(QUESTIONS) * self.new_tokens


@dataclass(frozen=True)
class Repetition:
    """One repetition: how long it took, and the host's part of each engine step if known."""

    seconds: float
    host_step_ms: float | None = None
