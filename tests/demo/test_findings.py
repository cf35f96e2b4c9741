"""Only a run that reached every stage without a problem is a pass."""

import pytest

from demo.chat import Answer
from demo.findings import Findings
from demo.proof import Comparison
from demo.server import Ending
from demo.server_log import ServerLog

COMPLETE = {
    "start_up_s": 100.0,
    "answer": Answer("Paris.", 8, 0.5, 1.5),
    "names_expected_word": True,
    "comparison": Comparison(48, 48, ()),
    "ending": Ending(0, 1.0, ()),
}


@pytest.fixture
def log(tmp_path):
    (tmp_path / "log").write_text("torchtpu: warm-up finished: graphs=6 compiled=9 seconds=64.9")
    return ServerLog(tmp_path / "log")


def test_a_complete_run_passes():
    findings = Findings(**COMPLETE)
    assert (findings.outcome, findings.reason) == ("pass", None)


@pytest.mark.parametrize("missing", ["names_expected_word", "comparison", "ending"])
def test_a_stage_that_was_not_reached_is_a_failure(missing):
    assert Findings(**{**COMPLETE, missing: None}).outcome == "fail"


def test_one_problem_is_a_failure_with_its_first_line_as_reason():
    findings = Findings(**COMPLETE, problems=["server: it broke; see\n  | log"])
    assert (findings.outcome, findings.reason) == ("fail", "server: it broke; see")


def test_a_timeout_is_its_own_outcome():
    assert Findings(timed_out=True, problems=["late"]).outcome == "timeout"


def test_metrics_hold_what_was_measured(log):
    metrics = Findings(**COMPLETE).metrics(log)
    assert metrics["demo.matching_tokens"] == metrics["demo.compared_tokens"] == 48
    assert metrics["serve.tokens_per_s"] == 7.0
    assert metrics["serve.graphs"] == 6


def test_metrics_leave_out_what_was_not(log):
    assert Findings().metrics(log) == {
        "demo.expected_answers": 0,
        "serve.graphs": 6,
        "serve.warm_up_s": 64.9,
    }
