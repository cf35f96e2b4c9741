"""Contenders answer over a pipe that no library's output can disturb."""

import pytest

from benchmarks.contender import Contender, ContenderError
from benchmarks.workload import Repetition, Workload

MODULE = "tests.benchmarks.fake_contender"


def contender(tmp_path, dtype="float32") -> Contender:
    return Contender(MODULE, Workload(tmp_path, dtype, new_tokens=20), tmp_path / "log")


def test_repetitions_come_one_at_a_time(tmp_path):
    with contender(tmp_path) as fake:
        assert [fake.repeat(), fake.repeat()] == [Repetition(2.0, 1.5)] * 2
    assert (tmp_path / "log").read_text() == "noise of a library\n"


def test_the_process_ends_with_its_block(tmp_path):
    fake = contender(tmp_path)
    with fake:
        pass
    assert fake.exit_code == 0


def test_an_early_end_names_the_log(tmp_path):
    with (
        pytest.raises(
            ContenderError, match=rf"{MODULE}: it ended with exit code 5; read its log, .*log"
        ),
        contender(tmp_path, "broken"),
    ):
        pass
