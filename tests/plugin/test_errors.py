"""One-sentence errors."""

import pytest
from vllm_torchtpu.errors import TorchTpuError, exit_with_sentence, raise_all


def test_no_problem_is_no_error():
    raise_all([])


def test_all_problems_are_in_one_error():
    with pytest.raises(TorchTpuError, match=r"^first; do this\nsecond; do that$"):
        raise_all(["first; do this", "second; do that"])


def test_a_mistake_leaves_the_process_with_its_sentence_only():
    with pytest.raises(SystemExit) as left, exit_with_sentence():
        raise TorchTpuError("where: what; remedy")
    assert left.value.code == "where: what; remedy"
    assert left.value.__suppress_context__


def test_any_other_error_passes():
    with pytest.raises(ZeroDivisionError), exit_with_sentence():
        _ = 1 / 0


def test_python_prints_the_sentence_without_a_traceback(run):
    done = run(
        "from vllm_torchtpu.errors import *\nwith exit_with_sentence(): raise TorchTpuError('a: b; c')"
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "a: b; c\n")
