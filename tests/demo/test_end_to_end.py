"""`python -m demo`, as a newcomer runs it: the whole path from the package to the table."""

import os
import signal
import subprocess
import sys
import time

import pytest
from tpu_matrix.evidence.store import EvidenceStore

from demo.run import ROOT

pytestmark = pytest.mark.engine


def start_demo(*arguments: str) -> subprocess.Popen[str]:
    """Starts the demo as a shell does: Ctrl-C arrives, and none of our variables are set."""
    return subprocess.Popen(
        [sys.executable, "-m", "demo", *arguments],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("TORCHTPU_")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_demo_answers_and_validates_its_row(tmp_path):
    with start_demo("--evidence", str(tmp_path)) as demo:
        output, errors = demo.communicate(timeout=600)
    assert demo.returncode == 0, errors
    assert "Answer:   The capital of France is Paris." in output
    assert "48 of 48 greedy tokens equal transformers in float32" in output
    assert "exit code 0, 0 orphans" in output
    [record] = EvidenceStore(tmp_path).read().records
    assert (record.kind, record.outcome, record.detected.device_kind) == (
        "virtual",
        "pass",
        "virtual",
    )
    assert record.metrics["serve.graphs"] > 0
    assert (ROOT / record.log).is_file()
    assert "build/support-matrix/llama.md" in output


def test_ctrl_c_while_vllm_starts_stops_everything(tmp_path):
    with start_demo("--evidence", str(tmp_path)) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if line.startswith("Starting vLLM"):
                break
        time.sleep(20)  # vLLM has imported torch and started its engine process
        demo.send_signal(signal.SIGINT)
        _, errors = demo.communicate(timeout=90)
    assert demo.returncode == 130
    assert errors == "\ndemo: interrupted; nothing was recorded\n"
    assert not list(tmp_path.iterdir())
