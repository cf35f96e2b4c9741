"""The repository's own matrix: clean, current, and claiming no evidence that is not there."""

import datetime as dt
from pathlib import Path

import pytest
from tpu_matrix.commands import generate, lint
from tpu_matrix.commands.workspace import Workspace
from tpu_matrix.evidence.admission import record_evidence
from tpu_matrix.evidence.record import VIRTUAL_DEVICE_KIND
from tpu_matrix.evidence.store import EvidenceStore
from tpu_matrix.matrix.status import matrix_cells

ROOT = Path(__file__).parents[2] / "support_matrix"
NOW = dt.datetime(2026, 11, 30, 12, 0, tzinfo=dt.UTC)


@pytest.fixture(scope="module")
def workspace():
    return Workspace(ROOT)


def test_lint_finds_nothing(workspace, capsys):
    assert lint.run(workspace, as_json=False) == 0, capsys.readouterr().out


def test_the_pages_are_current(workspace, capsys):
    assert generate.render(workspace, None, check=True) == 0, capsys.readouterr().out


def test_the_schemas_are_current(workspace, capsys):
    assert generate.schema(workspace, check=True) == 0, capsys.readouterr().out


def test_every_file_names_its_schema_for_editors():
    for path in [*ROOT.glob("*.yaml"), *ROOT.glob("models/*.yaml")]:
        first = path.read_text().splitlines()[0]
        assert first.startswith("# yaml-language-server: $schema="), path
        assert (path.parent / first.partition("=")[2]).is_file(), path


def test_no_hardware_cell_claims_a_run_before_a_tpu_has_run_it(workspace):
    cells = matrix_cells(workspace.matrix, (), NOW)
    assert {cells[row.id]["hardware"].status for row in workspace.matrix.rows()} == {"never-run"}


def test_the_demo_row_serves_the_demo_model_on_hardware_it_claims(workspace):
    row = workspace.row("smollm2-135m-instruct")
    assert row.item.checkpoint == "HuggingFaceTB/SmolLM2-135M-Instruct"
    assert row.item.hardware == "v7x-2"
    assert row.argv[:3] == ("vllm", "serve", "HuggingFaceTB/SmolLM2-135M-Instruct")


def test_a_run_of_the_demo_passes_in_the_virtual_column_alone(workspace, tmp_path):
    row = workspace.row("smollm2-135m-instruct")
    check = row.item.checks["virtual"]
    record = {
        "row_id": row.id,
        "args_hash": row.args_hash,
        "kind": "virtual",
        "outcome": "pass",
        "checkpoint": row.item.checkpoint,
        "metrics": {check.metric_key: check.at_least},
        "commit": "unknown",
        "versions": dict.fromkeys(("vllm", "torch", "torch_tpu", "jax", "libtpu"), "1"),
        "detected": {"device_kind": VIRTUAL_DEVICE_KIND, "devices": 1},
        "started": (NOW - dt.timedelta(minutes=2)).isoformat(),
        "finished": NOW.isoformat(),
        "log": "demo.log",
        "producer": "make demo",
    }
    store = EvidenceStore(tmp_path)
    record_evidence(record, workspace.matrix, store, NOW)
    cells = matrix_cells(workspace.matrix, store.read().records, NOW)[row.id]
    assert {kind: cell.status for kind, cell in cells.items()} == {
        "hardware": "never-run",
        "compiles": "never-run",
        "virtual": "pass",
    }


def test_only_v7x_is_in_continuous_ci(workspace):
    assert [
        entry.item.id for entry in workspace.matrix.generations if entry.item.continuous_ci
    ] == ["v7x"]
