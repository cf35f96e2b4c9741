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


MODULES = {
    ending.Process.API_SERVER: "vllm.entrypoints.cli.serve",
    ending.Process.ENGINE: "vllm.v1.engine.core",
}


@pytest.fixture(params=MODULES, ids=lambda process: process.name)
def process(request):
    return request.param


@pytest.fixture
def vllms(handlers, process):
    """vLLM's handler in that process, installed for both signals."""

    def handler(number, frame):
        raise KeyboardInterrupt

    handler.__module__ = MODULES[process]
    for number in handlers:
        signal.signal(number, handler)
    yield handler
    ending.let_requests_end()


def test_a_starting_server_ends_with_exit_code_0_on_either_signal(handlers, vllms, process):
    ending.end_at_once_while_starting(process)
    for number in handlers:
        with pytest.raises(SystemExit) as ended:
            signal.raise_signal(number)
        assert ended.value.code == 0


def test_a_started_engine_has_vllm_s_handlers_again(handlers, vllms, process):
    """They abort the open requests, so that streams end, before the process does."""
    ending.end_at_once_while_starting(process)
    ending.let_requests_end()
    assert [signal.getsignal(number) for number in handlers] == [vllms, vllms]


def test_handlers_that_vllm_has_replaced_meanwhile_stay(handlers, vllms, process):
    ending.end_at_once_while_starting(process)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    ending.let_requests_end()
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is vllms


def test_the_other_process_keeps_vllm_s_handlers(handlers, vllms, process):
    """The engine checks the configuration once more when it is up already."""
    (other,) = set(ending.Process) - {process}
    ending.end_at_once_while_starting(other)
    assert [signal.getsignal(number) for number in handlers] == [vllms, vllms]


def test_a_script_of_ones_own_keeps_its_handlers(handlers, process):
    ending.end_at_once_while_starting(process)
    assert {number: signal.getsignal(number) for number in handlers} == handlers
