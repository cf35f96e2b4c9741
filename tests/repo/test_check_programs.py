"""The checks that run other programs: their settings find what they are there for."""

import subprocess
import sys
from pathlib import Path

import pytest

from ci.checks import __main__ as command
from ci.checks import environment_page
from ci.checks.tool import BIN, Tool

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ("register", "platform", "worker", "runner", "ops", "device", "virtual", "envs", "errors")


@pytest.fixture
def contracts(tmp_path):
    """Runs the import contracts over packages that hold only the given imports."""

    def run(imports: dict[str, str]) -> str:
        modules = [
            "torchtpu_kernels/a",
            "tpu_matrix/a",
            *(f"vllm_torchtpu/{name}" for name in PLUGIN),
        ]
        for module in modules:
            path = tmp_path / f"{module}.py"
            path.parent.mkdir(exist_ok=True)
            (path.parent / "__init__.py").touch()
            path.write_text(imports.get(module, ""))
        config = ROOT / "pyproject.toml"
        done = subprocess.run(
            [str(BIN / "lint-imports"), "--no-cache", "--config", str(config)],
            cwd=tmp_path,
            env={"PYTHONPATH": str(tmp_path), "PATH": ""},
            capture_output=True,
            text=True,
        )
        assert (done.returncode == 0) == ("BROKEN" not in done.stdout), done.stdout + done.stderr
        return done.stdout

    return run


def test_imports_that_point_down_pass(contracts):
    imports = {"vllm_torchtpu/worker": "from vllm_torchtpu import runner, envs\nimport torch\n"}
    imports["vllm_torchtpu/ops"] = "import torchtpu_kernels.a\n"
    imports["torchtpu_kernels/a"] = "import jax\n"
    assert "5 kept, 0 broken" in contracts(imports)


def test_every_kind_of_wrong_import_is_reported(contracts):
    output = contracts(
        {
            "torchtpu_kernels/a": "import torch\n",
            "tpu_matrix/a": "import jax\n",
            "vllm_torchtpu/runner": "import torchtpu_kernels.a\nimport vllm_torchtpu.worker\n",
            "vllm_torchtpu/errors": "import tpu_matrix.a\n",
        }
    )
    assert "0 kept, 5 broken" in output


def test_a_failing_program_is_reported_with_what_it_said():
    failing = Tool("x", ("python", "-c", "import sys; print('one'); sys.exit('two')"))
    assert sorted(failing.problems(ROOT)) == ["one", "two"]
    assert Tool("x", ("python", "-c", "print('fine')")).problems(ROOT) == []
    assert Tool("x", ("python", "-c", "raise SystemExit(3)")).problems(ROOT) == [
        "python exited with 3 and said nothing"
    ]


def test_the_environment_page_must_be_what_the_declarations_say(tmp_path):
    (tmp_path / "docs").mkdir()
    (found,) = environment_page.problems(tmp_path, [])
    assert found == "docs/environment.md: is not what envs.py declares; run `make fix`"
    environment_page.fix(tmp_path)
    assert environment_page.problems(tmp_path, []) == []
    assert "TORCHTPU_DEVICE" in (tmp_path / environment_page.PAGE).read_text()


def test_all_checks_run_and_all_problems_are_shown(capsys):
    checks = {"a": lambda: ["x.py:1: bad; mend it"], "b": list, "c": lambda: ["y.py: bad; mend it"]}
    assert command.run(checks) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[:5] == [
        "FAIL  a",
        "      x.py:1: bad; mend it",
        "ok    b",
        "FAIL  c",
        "      y.py: bad; mend it",
    ]
    assert command.run({"b": list}) == 0


def test_an_unknown_argument_is_refused(capsys):
    assert command.main(["--all"]) == 2
    assert "give --repository, --fix or nothing" in capsys.readouterr().err


def test_ci_runs_the_commands_that_people_run():
    script = (ROOT / ".ci" / "run").read_text()
    assert script.startswith("#!/usr/bin/env bash\n")
    assert "set -euo pipefail" in script
    assert script.endswith("\nmake check\nmake test\n")


def test_the_programs_of_the_checks_are_installed():
    assert Path(sys.executable).parent == BIN
    for name in ("ruff", "lint-imports", "pyright", "tpu-matrix", "pre-commit"):
        assert (BIN / name).is_file()
