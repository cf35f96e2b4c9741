"""The tool is light: who installs it alone gets no torch, and `list` answers at once."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent / "example_matrix"
HEAVY = (
    "torch",
    "torch_tpu",
    "jax",
    "jaxlib",
    "numpy",
    "vllm",
    "vllm_torchtpu",
    "torchtpu_kernels",
)

IMPORT_ALL = f"""
import importlib, pkgutil, sys
import tpu_matrix
for module in pkgutil.walk_packages(tpu_matrix.__path__, "tpu_matrix."):
    importlib.import_module(module.name)
print(*sorted(set({HEAVY}) & set(sys.modules)))
"""

IMPORTED_BY_LIST = f"""
import sys
from tpu_matrix import cli
try:
    cli.main(["list", "--json", "--matrix", {str(EXAMPLE)!r}])
except SystemExit as ended:
    assert ended.code == 0, ended.code
print(*sorted(sys.modules), file=sys.stderr)
"""


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )


def test_no_module_imports_anything_heavy():
    assert python(IMPORT_ALL).stdout.strip() == ""


@pytest.mark.parametrize("name", ["rich", "tpu_matrix.evidence.record", "tpu_matrix.matrix.rules"])
def test_list_imports_only_what_it_needs(name):
    assert name not in python(IMPORTED_BY_LIST).stderr.split()


def test_list_takes_well_under_half_a_second():
    def seconds() -> float:
        start = time.perf_counter()
        command = [sys.executable, "-m", "tpu_matrix.cli", "list", "--matrix", str(EXAMPLE)]
        subprocess.run(command, capture_output=True, check=True, timeout=60)
        return time.perf_counter() - start

    # The best of some runs: a loaded machine says nothing about the tool.
    assert min(seconds() for _ in range(5)) < 0.4
