"""The tool is light: who installs it alone gets no torch, and `list` answers at once."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.factory import copy_example

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
        # Time of the processor, since on a busy machine the clock measures the others.
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "tpu_matrix.cli", "list", "--matrix", str(EXAMPLE)]
        subprocess.run(command, capture_output=True, check=True, timeout=60)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(seconds() for _ in range(5)) < 0.4


def test_a_reader_that_leaves_early_and_a_terminal_without_the_letters_end_no_traceback(tmp_path):
    root = copy_example(tmp_path)
    path = root / "models" / "llama.yaml"
    path.write_text(path.read_text().replace("tier: nightly", "tier: nightly\n    note: Zürich"))
    command = f"{sys.executable} -m tpu_matrix.cli show tiny --matrix {root}"
    environment = {"PYTHONIOENCODING": "ascii", "PATH": ""}
    spelled = subprocess.run(
        command.split(), capture_output=True, text=True, timeout=60, env=environment
    )
    assert (spelled.returncode, spelled.stderr) == (0, "")
    assert "Z\\xfcrich" in spelled.stdout
    piped = subprocess.run(f"{command} | :", shell=True, capture_output=True, text=True, timeout=60)
    assert piped.stderr == ""
