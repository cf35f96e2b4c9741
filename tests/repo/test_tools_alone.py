"""Who installs only the tools gets no torch: measured in an environment of their own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ci.setup import environment, uv
from ci.setup.bootstrap import UV_FOLDER

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {
    "torch",
    "torchvision",
    "torch_tpu",
    "jax",
    "jaxlib",
    "libtpu",
    "numpy",
    "vllm",
    "transformers",
    "vllm_torchtpu",
}


@pytest.mark.slow
def test_uv_sync_of_the_tools_alone_brings_no_torch_and_they_run(tmp_path):
    workspace, venv = tmp_path / "workspace", tmp_path / "venv"
    for name in ("plugin", "kernels"):
        (workspace / name).mkdir(parents=True)
        shutil.copy(ROOT / name / "pyproject.toml", workspace / name)
    shutil.copytree(
        ROOT / "tools", workspace / "tools", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in ("pyproject.toml", "uv.lock"):
        shutil.copy(ROOT / name, workspace)
    command = uv.find_or_install(UV_FOLDER, sys.executable, print)
    sync = [
        command,
        "sync",
        "--package",
        "tpu-matrix",
        "--python",
        sys._base_executable,
        "--no-python-downloads",
    ]
    subprocess.run(
        sync, cwd=workspace, env=uv.environment_variables(venv), check=True, capture_output=True
    )

    installed = {name.split("-")[0] for name in environment.distributions(venv)}
    assert "tpu_matrix" in installed
    assert not installed & HEAVY
    path = {**os.environ, "PYTHONPATH": ""}
    listed = subprocess.run(
        [str(venv / "bin" / "tpu-matrix"), "list"],
        cwd=ROOT,
        env=path,
        capture_output=True,
        text=True,
    )
    assert listed.returncode == 0, listed.stderr
    assert "smollm2-135m-instruct" in listed.stdout
