"""Lets `vllm serve` end in order: at once while it starts, and without a false report of a death."""

import logging
import signal
import threading
from types import FrameType

# vLLM's loggers, and what it says when a signal has come.
_LAUNCHER = "vllm.entrypoints.launchers.launcher"
_REPORTERS = (
    "vllm.v1.engine.async_llm",
    "vllm.entrypoints.openai.completion.serving",
    "vllm.entrypoints.openai.chat_completion.serving",
    "vllm.entrypoints.openai.responses.serving",
)
_ENDING = "[shutdown] API server: shutdown triggered"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def end_at_once_while_starting() -> None:
    """Makes SIGINT and SIGTERM end a starting `vllm serve` with exit code 0.

    vLLM's own handler raises KeyboardInterrupt, which the wait for the engine swallows
    (`vllm.utils.network_utils.zmq_socket_ctx`): the server would come up all the same. Where that
    handler is not installed, as in a script, nothing changes; when the server is up, vLLM replaces
    these handlers by those that let requests end.
    """
    handler = signal.getsignal(signal.SIGTERM)
    is_vllms = callable(handler) and (handler.__module__ or "").startswith("vllm.")
    if is_vllms and threading.current_thread() is threading.main_thread():
        for number in _SIGNALS:
            signal.signal(number, _end)


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
    reports the engine as dead, as do the streams that are open. An engine that dies by itself keeps its report.
    """
    noise = _ShutdownNoise()
    for name in (_LAUNCHER, *_REPORTERS):
        upstream = logging.getLogger(name)
        if not any(isinstance(known, _ShutdownNoise) for known in upstream.filters):
            upstream.addFilter(noise)
