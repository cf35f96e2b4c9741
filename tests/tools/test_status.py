"""Statuses fail closed: only proof leads to a pass."""

import dataclasses
import datetime as dt
from typing import get_args

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st
from tpu_matrix.evidence.record import Detected, Kind, Outcome, Record
from tpu_matrix.matrix.model import Quarantine
from tpu_matrix.matrix.status import STATUSES, cell_status, matrix_cells, worst

from tests.tools.factory import COMMIT, NOW, example_matrix, example_row, record

OTHER_COMMIT = "f" * 40
ROW = example_row()
FRESH_DAYS = 3


def ago(**span):
    return (NOW - dt.timedelta(**span)).isoformat()


def run(outcome="pass", hours=1.0, kind="hardware", **changes):
    times = {"started": ago(hours=hours + 1), "finished": ago(hours=hours)}
    reason = {"reason": "a reason"} if outcome in ("skipped", "blocked") else {}
    return record(ROW, kind, outcome=outcome, **times | reason | changes)


def status(
    *records: Record, kind: Kind = "hardware", row=ROW, now=NOW, fresh: int | None = FRESH_DAYS
):
    return cell_status(row, kind, records, now, fresh).status


def test_a_fresh_pass_on_the_rows_own_hardware_is_a_pass():
    assert status(run()) == "pass"


def test_nothing_recorded_is_never_run():
    assert status() == "never-run"


@pytest.mark.parametrize("kind", ["virtual", "compiles"])
def test_other_kinds_never_raise_the_hardware_cell(kind):
    assert status(run(kind=kind), kind=kind) == "pass"
    assert status(run(kind=kind)) == "never-run"


@pytest.mark.parametrize("outcome", ["fail", "oom", "timeout", "infra-error", "blocked"])
def test_the_newest_outcome_is_the_status(outcome):
    assert status(run(hours=5, commit=OTHER_COMMIT), run(outcome)) == outcome


def test_a_pass_after_a_failure_of_another_commit_is_a_pass():
    assert status(run("fail", hours=5, commit=OTHER_COMMIT), run()) == "pass"


@pytest.mark.parametrize("outcome", ["fail", "oom", "timeout"])
def test_a_pass_beside_a_failure_of_the_same_commit_is_flaky(outcome):
    assert status(run(outcome, hours=5), run()) == "flaky"


def test_an_infrastructure_error_before_a_pass_is_no_flakiness():
    assert status(run("infra-error", hours=5), run(attempt=2)) == "pass"


def test_a_skip_decides_nothing():
    assert status(run("skipped")) == "never-run"
    assert status(run("fail", hours=5), run("skipped")) == "fail"


def test_old_evidence_is_stale_whatever_it_says():
    assert status(run(hours=24 * FRESH_DAYS)) == "pass"
    assert status(run(hours=24 * FRESH_DAYS + 0.01)) == "stale"
    assert status(run("fail", hours=24 * FRESH_DAYS + 0.01)) == "stale"


def test_evidence_of_earlier_arguments_is_stale():
    earlier = ROW.id[:-8] + "0" * 8
    assert status(run(row_id=earlier, args_hash="0" * 64)) == "stale"


def test_a_tier_that_is_not_described_makes_everything_stale():
    assert status(run(), fresh=None) == "stale"


def test_a_threshold_raised_since_the_run_takes_the_pass_away():
    checks = {"accuracy": ROW.item.checks["accuracy"].model_copy(update={"at_least": 0.7})}
    row = dataclasses.replace(ROW, item=ROW.item.model_copy(update={"checks": checks}))
    assert status(run(), row=row) == "fail"


def test_quarantine_is_visible_and_expires():
    quarantine = Quarantine(
        owner="jane", issue="https://example.org/1", until=NOW.date(), reason="A flaky host."
    )
    row = dataclasses.replace(ROW, item=ROW.item.model_copy(update={"quarantine": quarantine}))
    assert status(run(), row=row) == "quarantined"
    assert status(run(), row=row, now=NOW + dt.timedelta(days=1)) == "pass"


def test_a_row_without_a_virtual_check_has_no_virtual_status():
    assert status(kind="virtual", row=example_row("tiny-recipe")) == "not-applicable"


def test_of_simultaneous_runs_the_worse_counts():
    assert status(run(), run("fail", producer="another")) == "fail"
    assert status(run("fail", producer="another"), run()) == "fail"


def test_evidence_is_matched_to_its_row_among_many():
    matrix = example_matrix()
    cells = matrix_cells(matrix, [run()], NOW)
    assert {row.slug: cells[row.id]["hardware"].status for row in matrix.rows()} == {
        "tiny": "pass",
        "tiny-recipe": "never-run",
    }


def test_the_worst_of_nothing_is_never_run_and_no_failure_hides_behind_a_pass():
    assert worst([]) == "never-run"
    assert worst(["pass", "fail", "never-run"]) == "fail"
    assert worst(["pass", "stale"]) == "stale"
    assert worst(["not-applicable", "pass"]) == "pass"
    assert all(worst(["pass", other]) == other for other in STATUSES[2:])


def test_a_pass_that_the_present_threshold_takes_away_contradicts_a_later_pass():
    checks = {"accuracy": ROW.item.checks["accuracy"].model_copy(update={"at_least": 0.65})}
    row = dataclasses.replace(ROW, item=ROW.item.model_copy(update={"checks": checks}))
    better = run(attempt=2, metrics={"gsm8k.exact_match": 0.7})
    assert status(better, row=row) == "pass"
    assert status(run(hours=5), better, row=row) == "flaky"


def moments():
    return st.timedeltas(dt.timedelta(days=-10), dt.timedelta(days=10)).map(
        lambda offset: NOW + offset
    )


@st.composite
def records(draw):
    """Draws records that are wrong in at most a few ways, so that some lead to a pass."""
    base = run(kind=draw(st.sampled_from(["hardware", "hardware", "virtual", "compiles"])))
    finished = draw(st.one_of(st.just(base.finished), moments()))
    changes = {
        "outcome": draw(st.sampled_from(["pass", "pass", "pass", *get_args(Outcome)])),
        "finished": finished,
        "started": finished - dt.timedelta(hours=1),
        "commit": draw(
            st.sampled_from([COMMIT, COMMIT, OTHER_COMMIT, f"{COMMIT}-dirty", "unknown"])
        ),
        "metrics": draw(
            st.sampled_from([base.metrics, base.metrics, {}, {"gsm8k.exact_match": 0.49}])
        ),
        "checkpoint": draw(st.sampled_from([base.checkpoint, base.checkpoint, "example/other"])),
        "attempt": draw(st.integers(1, 2)),
    }
    if draw(st.integers(0, 3)) == 0:
        kinds = st.sampled_from(["TPU7x", "TPU v6e", "virtual"])
        changes["detected"] = Detected(
            device_kind=draw(kinds), devices=draw(st.sampled_from([1, 2, 8]))
        )
    if draw(st.integers(0, 5)) == 0:
        changes |= {
            "args_hash": "0" * 64,
            "row_id": ROW.id[:-8] + draw(st.sampled_from(["0" * 8, ROW.id[-8:]])),
        }
    if draw(st.integers(0, 5)) == 0:
        changes["row_id"] = draw(
            st.sampled_from([example_row("tiny-recipe").id, ROW.id.replace("v7x-2", "v7x-8")])
        )
    return base.model_copy(update=changes)


def proves_a_pass(record: Record, now: dt.datetime) -> bool:
    """States independently of the code what a proof is."""
    return (
        record.row_id == ROW.id
        and record.args_hash == ROW.args_hash
        and record.kind == "hardware"
        and record.outcome == "pass"
        and record.detected == Detected(device_kind="TPU7x", devices=2)
        and record.checkpoint == "example/tiny"
        and record.metrics.get("gsm8k.exact_match", 0) >= 0.5
        and dt.timedelta(minutes=-5) <= now - record.finished <= dt.timedelta(days=FRESH_DAYS)
        and record.commit in (COMMIT, OTHER_COMMIT)
    )


@settings(deadline=None)
@given(st.lists(records(), max_size=5), moments())
def test_no_input_yields_a_pass_without_proof(found, now):
    cell = cell_status(ROW, "hardware", found, now, FRESH_DAYS)
    assert cell.status in STATUSES
    if cell.status == "pass":
        assert cell.record is not None
        assert cell.record in found
        assert proves_a_pass(cell.record, now)


@settings(deadline=None)
@given(st.lists(records(), max_size=5), moments(), st.randoms())
def test_a_status_does_not_depend_on_the_order_of_the_evidence(found, now, random):
    shuffled = list(found)
    random.shuffle(shuffled)
    assert status(*found, now=now) == status(*shuffled, now=now)


def test_the_drawn_records_do_reach_a_pass():
    found = find(st.lists(records(), max_size=5), lambda drawn: status(*drawn) == "pass")
    # Which record that is, is the status's to say: a smallest example may hold another beside it.
    cell = cell_status(ROW, "hardware", found, NOW, FRESH_DAYS)
    assert cell.record is not None
    assert proves_a_pass(cell.record, NOW)
