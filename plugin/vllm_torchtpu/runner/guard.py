"""Watches for compilations after warm-up: each one stalls every request for seconds."""

from vllm.logger import init_logger

from vllm_torchtpu.compile.counter import executable_count
from vllm_torchtpu.errors import TorchTpuError

logger = init_logger("vllm.torchtpu.guard")


class CompileGuard:
    """Compares the number of executables the process has asked for before and after each step.

    One read from the persistent cache counts too: its shape was missing from the warm-up.
    """

    def __init__(self, action: str) -> None:
        """Takes `action`: "warn" logs each shape once, "raise" raises."""
        self._action = action
        self._expected: int | None = None
        self._told: set[str] = set()

    def arm(self) -> None:
        """Ends the warm-up: from now on the count must not rise."""
        self._expected = executable_count()

    def check(self, shape: str) -> None:
        """Reports compilations since the last call; `shape` describes the step just run.

        Raises:
            TorchTpuError: The action is "raise" and something was compiled.
        """
        if self._expected is None:
            return
        count = executable_count()
        new, self._expected = count - self._expected, count
        if new == 0:
            return
        sentence = (
            f"compile guard: {new} new graph(s) after warm-up, asked for by a step of {shape}; "
            "report it, since start-up should have compiled every shape"
        )
        if self._action == "raise":
            raise TorchTpuError(sentence)
        if shape not in self._told:
            self._told.add(shape)
            logger.warning(sentence)
