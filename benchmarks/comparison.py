"""Medians and ratios of repetitions that took turns."""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.workload import Repetition


@dataclass(frozen=True)
class Comparison:
    """One dtype: the engine's repetitions beside the baseline's, in the order they ran."""

    dtype: str
    requests: int
    new_tokens: int
    engine: Sequence[Repetition]
    baseline: Sequence[Repetition]

    @property
    def engine_tokens_per_s(self) -> float:
        """Generated tokens per second of the engine's median repetition."""
        return self._tokens_per_s(self.engine)

    @property
    def baseline_tokens_per_s(self) -> float:
        """Generated tokens per second of the baseline's median repetition."""
        return self._tokens_per_s(self.baseline)

    @property
    def ratio(self) -> float:
        """Engine over baseline: the median over turns, so that a busy machine hits both sides."""
        turns = zip(self.engine, self.baseline, strict=True)
        return statistics.median(theirs.seconds / ours.seconds for ours, theirs in turns)

    @property
    def step_ms(self) -> float:
        """Wall milliseconds per decode step of the engine: each step makes one token per request."""
        return 1000 * statistics.median(r.seconds for r in self.engine) / self.new_tokens

    @property
    def host_step_ms(self) -> float | None:
        """The host's part of a step, without waiting for the device; None if it is not known."""
        known = [r.host_step_ms for r in self.engine if r.host_step_ms is not None]
        return statistics.median(known) if known else None

    def as_json(self) -> dict[str, Any]:
        """Returns the repetitions and everything derived from them."""
        return {
            "dtype": self.dtype,
            "requests": self.requests,
            "new_tokens": self.new_tokens,
            "engine_tokens_per_s": round(self.engine_tokens_per_s, 2),
            "baseline_tokens_per_s": round(self.baseline_tokens_per_s, 2),
            "ratio": round(self.ratio, 3),
            "step_ms": round(self.step_ms, 2),
            "host_step_ms": None if self.host_step_ms is None else round(self.host_step_ms, 2),
            "engine": [asdict(repetition) for repetition in self.engine],
            "baseline": [asdict(repetition) for repetition in self.baseline],
        }

    def _tokens_per_s(self, repetitions: Sequence[Repetition]) -> float:
        seconds = statistics.median(repetition.seconds for repetition in repetitions)
        return self.requests * self.new_tokens / seconds
