"""An orderly end of the server: its signals while it starts, and what it keeps quiet."""

import logging
import signal

import pytest
from vllm_torchtpu import ending

LAUNCHER = "vllm.entrypoints.launchers.launcher"
HANDLER = "vllm.v1.engine.async_llm"


class EngineDeadError(Exception):
    """Named like vLLM's, which is recognised by its name."""


@pytest.fixture
def loggers():
    found = [logging.getLogger(name) for name in (LAUNCHER, HANDLER)]
    before = [list(logger.filters) for logger in found]
    for logger in found:
        logger.filters.clear()
        logger.setLevel(logging.INFO)
    ending.keep_quiet()
    ending.keep_quiet()
    yield found
    for logger, filters in zip(found, before, strict=True):
        logger.filters[:] = filters


def _shown(logger, error: Exception) -> bool:
    record = logger.makeRecord(
        logger.name, logging.ERROR, "", 0, "output_handler failed", (), (type(error), error, None)
    )
    return bool(logger.filter(record))


def test_a_death_before_the_end_is_shown_and_one_after_it_is_not(loggers):
    launcher, handler = loggers
    assert len(launcher.filters) == 1, "installed twice"
    assert _shown(handler, EngineDeadError())
    launcher.info("[shutdown] API server: shutdown triggered")
    assert not _shown(handler, EngineDeadError())


def test_other_errors_are_shown_after_the_end_too(loggers):
    launcher, handler = loggers
    launcher.info("[shutdown] API server: shutdown triggered")
    assert _shown(handler, ValueError("something else"))


@pytest.fixture
def handlers():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield before
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_starting_server_ends_with_exit_code_0_on_either_signal(handlers):
    def vllms(number, frame):
        raise KeyboardInterrupt

    vllms.__module__ = "vllm.entrypoints.openai.api_server"
    signal.signal(signal.SIGTERM, vllms)
    ending.end_at_once_while_starting()
    for number in handlers:
        with pytest.raises(SystemExit) as ended:
            signal.raise_signal(number)
        assert ended.value.code == 0


def test_a_script_of_ones_own_keeps_its_handlers(handlers):
    ending.end_at_once_while_starting()
    assert {number: signal.getsignal(number) for number in handlers} == handlers
