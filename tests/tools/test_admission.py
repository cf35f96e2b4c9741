"""What the evidence refuses, and that it says every reason."""

import datetime as dt
import json

import pytest
from tpu_matrix.errors import RefusedRecordError
from tpu_matrix.evidence.admission import record_evidence
from tpu_matrix.evidence.store import EvidenceStore
from tpu_matrix.matrix.load import load

from tests.tools.factory import (
    COMMIT,
    NOW,
    VERSIONS,
    copy_example,
    example_matrix,
    example_row,
    record_data,
)


def refused(tmp_path, data, matrix=None):
    store = EvidenceStore(tmp_path / "evidence")
    with pytest.raises(RefusedRecordError) as caught:
        record_evidence(data, matrix or example_matrix(), store, NOW)
    assert store.read().records == ()
    return str(caught.value)


@pytest.mark.parametrize("kind", ["hardware", "virtual", "compiles"])
def test_a_true_record_of_each_kind_is_taken(kind, tmp_path):
    store = EvidenceStore(tmp_path)
    data = record_data(example_row(), kind)
    record, is_new = record_evidence(data, example_matrix(), store, NOW)
    assert is_new
    assert store.read().records[0].to_line() == record.to_line()


@pytest.mark.parametrize(
    ("kind", "changes", "reason"),
    [
        (
            "hardware",
            {"detected": {"device_kind": "TPU v6e", "devices": 2}},
            "ran on 'TPU v6e', while v7x-2 is TPU7x",
        ),
        (
            "hardware",
            {"detected": {"device_kind": "TPU7x", "devices": 8}},
            "saw 8 devices, while v7x-2 has 2",
        ),
        ("hardware", {"detected": {"device_kind": "virtual", "devices": 2}}, "ran on 'virtual'"),
        (
            "virtual",
            {"detected": {"device_kind": "TPU7x", "devices": 2}},
            "a virtual run detected 'TPU7x'",
        ),
        ("hardware", {"metrics": {}}, "gsm8k.exact_match is missing"),
        (
            "hardware",
            {"metrics": {"gsm8k.exact_match": 0.4}},
            "gsm8k.exact_match is 0.4, below 0.5",
        ),
        ("virtual", {"metrics": {"gsm8k.exact_match": 1}}, "demo.expected_answers is missing"),
        ("compiles", {"metrics": {}}, "compile.hbm_bytes_per_device is missing"),
        (
            "compiles",
            {"metrics": {"compile.hbm_bytes_per_device": 2e11}},
            "needs 186.3 GiB per device, of 96 present",
        ),
        ("hardware", {"outcome": "passed"}, "did you mean 'pass'?"),
        ("hardware", {"outcome": "untested"}, "'untested', which is not a known value; use one of"),
        ("hardware", {"outcome": "skipped"}, "'skipped' needs a reason"),
        ("hardware", {"commit": f"{COMMIT}-dirty"}, "cannot be checked out"),
        ("hardware", {"commit": "unknown"}, "cannot be checked out"),
        (
            "hardware",
            {"checkpoint": "example/other"},
            "ran example/other, while the row tests example/tiny",
        ),
        ("hardware", {"finished": (NOW + dt.timedelta(minutes=6)).isoformat()}, "in the future"),
        ("hardware", {"started": NOW.isoformat()}, "finished lies before started"),
        ("hardware", {"finished": "2026-11-30T11:00:00"}, "timezone"),
        ("hardware", {"versions": {**VERSIONS, "jax": ""}}, "versions.jax"),
        ("hardware", {"attempt": 0}, "attempt"),
        ("hardware", {"metrics": {"gsm8k.exact_match": "0.9"}}, "should be a valid number"),
        ("hardware", {"schema_version": 2}, "schema_version"),
        ("hardware", {"colour": "green"}, "unknown key 'colour'"),
        (
            "hardware",
            {"row_id": "tinny:v7x-2:0e3800d4"},
            "there is no row 'tinny'; did you mean 'tiny'?",
        ),
        ("hardware", {"args_hash": "0" * 64}, "row_id does not end with the start of args_hash"),
    ],
)
def test_a_record_that_proves_nothing_is_refused_with_the_reason(kind, changes, reason, tmp_path):
    assert reason in refused(tmp_path, record_data(example_row(), kind, **changes))


def test_all_reasons_come_at_once(tmp_path):
    changes = {
        "detected": {"device_kind": "TPU v5", "devices": 4},
        "metrics": {},
        "checkpoint": "a/b",
    }
    message = refused(tmp_path, record_data(example_row(), **changes))
    assert "refused for 4 reasons" in message
    assert message.count("\n  - ") == 4


def test_a_record_of_earlier_arguments_is_refused(tmp_path):
    root = copy_example(tmp_path)
    path = root / "models" / "llama.yaml"
    path.write_text(path.read_text().replace("max_model_len: 1024", "max_model_len: 2048"))
    message = refused(tmp_path, record_data(example_row()), load(root).matrix)
    assert "it is about tiny:v7x-2:0e3800d4, while the row is now tiny:v7x-2:" in message


@pytest.mark.parametrize("outcome", ["pass", "fail"])
def test_a_threshold_of_zero_is_refused_whatever_the_outcome(outcome, tmp_path):
    root = copy_example(tmp_path)
    path = root / "models" / "llama.yaml"
    path.write_text(path.read_text().replace("at_least: 0.5", "at_least: 0"))
    message = refused(tmp_path, record_data(example_row(), outcome=outcome), load(root).matrix)
    assert "the threshold of accuracy is 0" in message


def test_a_pass_without_a_check_behind_it_is_refused(tmp_path):
    row = example_row("tiny-recipe")
    data = record_data(row, detected={"device_kind": "TPU v6 lite", "devices": 1})
    assert "no check that a hardware run could pass" in refused(tmp_path, data)


def test_a_failure_needs_no_metric(tmp_path):
    data = record_data(example_row(), outcome="oom", metrics={})
    assert record_evidence(data, example_matrix(), EvidenceStore(tmp_path), NOW)[1]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "\xff", '{"row_id": "x"'])
def test_what_is_no_record_is_refused_in_a_sentence(text, tmp_path):
    assert "record: " in refused(tmp_path, text.encode("latin-1"))


def test_the_same_run_twice_is_one_record(tmp_path):
    store, data = EvidenceStore(tmp_path), record_data(example_row())
    assert record_evidence(data, example_matrix(), store, NOW)[1]
    assert not record_evidence(json.dumps(data), example_matrix(), store, NOW)[1]
    assert len(store.read().records) == 1


def test_the_same_run_with_another_result_is_refused(tmp_path):
    store, row = EvidenceStore(tmp_path), example_row()
    record_evidence(record_data(row, outcome="fail"), example_matrix(), store, NOW)
    with pytest.raises(RefusedRecordError, match="already recorded with other content"):
        record_evidence(record_data(row), example_matrix(), store, NOW)
    assert [record.outcome for record in store.read().records] == ["fail"]
