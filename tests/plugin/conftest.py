"""Fixtures of the plugin's tests: fresh Python processes, and the virtual TPU in this one."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

# Tests that import torch here need the virtual TPU at most, and no torch_tpu at `import torch`.
os.environ.update(
    TORCHTPU_DEVICE="virtual", TORCH_DEVICE_BACKEND_AUTOLOAD="0", VLLM_XLA_CACHE_PATH=""
)

# What a plain shell does not have: our variables, and those the plugin exports.
_OURS = ("TORCHTPU_", "TORCH_TPU_", "TPU_", "TORCHINDUCTOR_", "TF_CPP_", "VLLM_", "TORCH_DEVICE_")

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def plain_environment(**extra: str) -> dict[str, str]:
    """This process's environment without any variable of torch_tpu, vLLM or the plugin."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    return plain | extra


@pytest.fixture(scope="session")
def build_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the library of the virtual TPU is built once for all tests, workers of xdist included."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "virtual-tpu"


@pytest.fixture
def environment(build_directory: Path) -> Mapping[str, str]:
    """The environment of a plain shell, but for the two directories that tests must not share."""
    return plain_environment(TORCHTPU_CACHE_DIR=str(build_directory), VLLM_XLA_CACHE_PATH="")


@pytest.fixture
def run(environment: Mapping[str, str]) -> Run:
    """Runs a script in a fresh Python and returns what it printed and its status."""

    def run_script(script: str, *arguments: str, **variables: str):
        return subprocess.run(
            [sys.executable, "-c", script, *arguments],
            env={**environment, **variables},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    return run_script


@pytest.fixture(scope="session")
def virtual_tpu(build_directory: Path) -> None:
    """Makes torch device "tpu" usable in this process."""
    from vllm_torchtpu import device

    os.environ["TORCHTPU_CACHE_DIR"] = str(build_directory)
    device.initialise()
