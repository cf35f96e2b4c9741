"""The guard that reports compilations after warm-up."""

import logging

import pytest
from vllm_torchtpu.errors import TorchTpuError
from vllm_torchtpu.runner import guard
from vllm_torchtpu.runner.guard import CompileGuard


class _Process:
    """A process whose number of executables the test sets."""

    executables = 10


@pytest.fixture
def process(monkeypatch) -> _Process:
    process = _Process()
    monkeypatch.setattr(guard, "executable_count", lambda: process.executables)
    return process


@pytest.fixture
def warnings(monkeypatch) -> list[str]:
    """The sentences that the guard logs (vLLM's loggers do not propagate to pytest's)."""
    sentences: list[str] = []
    monkeypatch.setattr(guard.logger, "warning", sentences.append)
    return sentences


def test_nothing_is_reported_during_warm_up(process, warnings):
    watch = CompileGuard("raise")
    process.executables += 5
    watch.check("8 tokens")
    assert warnings == []


def test_a_step_without_a_compilation_is_silent(process, warnings):
    watch = CompileGuard("raise")
    watch.arm()
    watch.check("8 tokens")
    assert warnings == []


def test_what_was_compiled_before_it_was_armed_does_not_count(process):
    watch = CompileGuard("raise")
    process.executables += 5
    watch.arm()
    watch.check("8 tokens")


def test_a_compilation_raises_with_its_shape_and_number(process):
    watch = CompileGuard("raise")
    watch.arm()
    process.executables += 3
    with pytest.raises(TorchTpuError, match=r"3 new graph\(s\).*a step of 9 tokens; "):
        watch.check("9 tokens")


def test_each_compilation_is_reported_by_the_step_that_asked_for_it_only(process):
    watch = CompileGuard("raise")
    watch.arm()
    process.executables += 1
    with pytest.raises(TorchTpuError):
        watch.check("9 tokens")
    watch.check("10 tokens")


def test_a_warning_names_each_shape_once(process, warnings):
    watch = CompileGuard("warn")
    watch.arm()
    for shape in ("9 tokens", "9 tokens", "70 tokens", "9 tokens"):
        process.executables += 1
        watch.check(shape)
    assert ["9 tokens" in warnings[0], "70 tokens" in warnings[1]] == [True, True]
    assert len(warnings) == 2


def test_the_guard_s_logger_is_vllm_s():
    assert isinstance(guard.logger, logging.Logger)
    assert guard.logger.name.startswith("vllm.")
