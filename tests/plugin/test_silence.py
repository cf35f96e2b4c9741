"""Only an orderly end is kept quiet; a death of the engine is not."""

import logging

import pytest
from vllm_torchtpu import silence

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
    silence.shutdown()
    silence.shutdown()
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
