"""Lets `vllm serve` end in order: at once while it starts, and without a false report of a death."""

import enum
import logging
import signal
import threading
from types import FrameType
from typing import Any

# vLLM's loggers, and what it says when a signal has come.
_LAUNCHER = "vllm.entrypoints.launchers.launcher"
_LISTENER = "vllm.v1.engine.async_llm"
_ENDING = "[shutdown] API server: shutdown triggered"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Process(enum.Enum):
    """A process of `vllm serve`, by the module of vLLM whose signal handlers it has."""

    API_SERVER = "vllm.entrypoints."
    ENGINE = "vllm.v1.engine."


_replaced: dict[signal.Signals, Any] = {}


def end_at_once_while_starting(process: Process) -> None:
    """Makes SIGINT and SIGTERM end a starting process of `vllm serve` with exit code 0.

    The API server's own handler raises KeyboardInterrupt, which the wait for the engine swallows
    (`vllm.utils.network_utils.zmq_socket_ctx`): the server would come up all the same. The engine's
    only remembers the signal, and warms up to the end. Where that process's handlers are not
    installed, as in a script or in the other process, nothing changes.
    """
    handler = signal.getsignal(signal.SIGTERM)
    is_vllms = callable(handler) and (handler.__module__ or "").startswith(process.value)
    if is_vllms and threading.current_thread() is threading.main_thread():
        _replaced.update({number: signal.signal(number, _end) for number in _SIGNALS})


def let_requests_end() -> None:
    """Gives the signals of a started engine back to vLLM, whose handlers abort open requests.

    The API server needs no such call: vLLM replaces its handlers when it is up.
    """
    for number, handler in _replaced.items():
        if signal.getsignal(number) is _end:
            signal.signal(number, handler)
    _replaced.clear()


def _end(number: int, frame: FrameType | None) -> None:
    raise SystemExit(0)


class _ShutdownNoise(logging.Filter):
    """Drops the engine's "death" from the log once the server has been told to end."""

    def __init__(self) -> None:
        super().__init__()
        self.is_ending = False

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name == _LAUNCHER:
            self.is_ending |= _ENDING in record.getMessage()
            return True
        error = record.exc_info[1] if record.exc_info else None
        return not (self.is_ending and type(error).__name__ == "EngineDeadError")


def keep_quiet() -> None:
    """Keeps an orderly end of `vllm serve` from logging a traceback.

    vLLM cancels the task that listens to the engine before the one that waits for it, which then
    reports the engine as dead. An engine that dies by itself keeps its report.
    """
    noise = _ShutdownNoise()
    for name in (_LAUNCHER, _LISTENER):
        upstream = logging.getLogger(name)
        if not any(isinstance(known, _ShutdownNoise) for known in upstream.filters):
            upstream.addFilter(noise)
