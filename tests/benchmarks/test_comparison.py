"""Medians over turns, so that one disturbed turn decides nothing."""

import pytest

from benchmarks.comparison import Comparison
from benchmarks.workload import Repetition


@pytest.fixture
def comparison():
    # The second turn met a busy machine on both sides.
    engine = [Repetition(1.0, 4.0), Repetition(10.0, 6.0), Repetition(1.1, 5.0)]
    baseline = [Repetition(2.0), Repetition(30.0), Repetition(2.2)]
    return Comparison("float32", requests=8, new_tokens=10, engine=engine, baseline=baseline)


def test_tokens_per_second_are_those_of_the_median_repetition(comparison):
    assert comparison.engine_tokens_per_s == pytest.approx(80 / 1.1)
    assert comparison.baseline_tokens_per_s == pytest.approx(80 / 2.2)


def test_the_ratio_is_the_median_of_the_turns(comparison):
    assert comparison.ratio == pytest.approx(2.0)


def test_a_step_makes_one_token_per_request(comparison):
    assert comparison.step_ms == pytest.approx(110)
    assert comparison.host_step_ms == 5.0


def test_an_unknown_host_time_stays_unknown(comparison):
    silent = Comparison("float32", 8, 10, comparison.baseline, comparison.baseline)
    assert silent.host_step_ms is None
    assert silent.as_json()["host_step_ms"] is None


def test_json_holds_every_repetition(comparison):
    data = comparison.as_json()
    assert [r["seconds"] for r in data["engine"]] == [1.0, 10.0, 1.1]
    assert data["ratio"] == 2.0
