"""Splits a step's time into the host's work and the wait for the device."""

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

_KEPT_STEPS = 4096


class StepTimer:
    """Sums the host's seconds of each step, without the blocking copies from the device."""

    def __init__(self) -> None:
        self._host_s = 0.0
        self.steps: deque[float] = deque(maxlen=_KEPT_STEPS)
        """Host seconds of the latest steps, oldest first."""

    @contextmanager
    def host(self) -> Iterator[None]:
        """Counts the enclosed time as the host's."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self._host_s += time.perf_counter() - start

    @contextmanager
    def device(self) -> Iterator[None]:
        """Takes the enclosed wait for the device out of the host's time."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self._host_s -= time.perf_counter() - start

    def finish_step(self) -> None:
        """Records the step and starts the next one."""
        self.steps.append(self._host_s)
        self._host_s = 0.0
