"""The demo runs the row's own command, and its record gives the row's status."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tpu_matrix.errors import RefusedRecordError
from tpu_matrix.evidence.record import Outcome
from tpu_matrix.evidence.store import EvidenceStore

from demo.row import DemoRow, Run
from demo.run import ROOT

METRICS = {"demo.expected_answers": 1.0, "demo.matching_tokens": 48.0, "demo.compared_tokens": 48.0}


@pytest.fixture
def row(tmp_path):
    return DemoRow(ROOT, tmp_path / "evidence")


def finished_run(outcome: Outcome = "pass", metrics=METRICS, reason=None) -> Run:
    now = datetime.now(UTC)
    log = ROOT / "build" / "demo" / "server.log"
    return Run(outcome, reason, metrics, 1, now - timedelta(minutes=3), now, log)


def test_the_command_is_the_one_that_the_matrix_shows(row):
    shown = subprocess.run(
        [sys.executable, "-m", "tpu_matrix.cli", "show", row.id],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    claimed = shown[shown.index("vllm serve") :].split()
    program, *arguments = row.serve_argv(Path("/model"), port=1234)
    assert Path(program) == Path(sys.executable).parent / "vllm"
    assert arguments[:4] == ["serve", "/model", "--served-model-name", claimed[2]]
    assert arguments[4:-4] == claimed[3:]
    assert arguments[-4:] == ["--host", "127.0.0.1", "--port", "1234"]


def test_a_passing_run_makes_the_row_pass(row, capsys, tmp_path):
    record = row.record(finished_run())
    row.print_status()
    status = next(line for line in capsys.readouterr().out.splitlines() if "Virtual TPU" in line)
    assert status.split()[2] == "pass"
    assert record.log == "build/demo/server.log"
    assert [r.id for r in EvidenceStore(tmp_path / "evidence").read().records] == [record.id]


def test_a_failing_run_does_not(row, capsys):
    row.record(finished_run("fail", reason="proof: token 3 differs"))
    row.print_status()
    status = next(line for line in capsys.readouterr().out.splitlines() if "Virtual TPU" in line)
    assert status.split()[2] == "fail"
    assert "token 3 differs" in status


def test_a_pass_without_its_metric_is_refused(row):
    with pytest.raises(RefusedRecordError, match="missing"):
        row.record(finished_run(metrics={}))


def test_the_rendered_page_shows_the_run_and_changes_no_tracked_file(row, tmp_path):
    record = row.record(finished_run())
    page = row.render(tmp_path / "pages")
    assert page.parent == tmp_path / "pages"
    assert record.commit in page.read_text()
