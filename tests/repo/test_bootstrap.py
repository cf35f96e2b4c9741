"""Set-up from beginning to end in a copied workspace, with a stand-in for uv that installs one small package."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FAKE_UV = """#!{python}
import os, pathlib, sys, time
if sys.argv[1:] == ["--version"]:
    sys.exit(print("uv 0.13.9"))
root = pathlib.Path.cwd()
with open(root / "calls", "a") as calls:
    print(*sys.argv[1:], file=calls)
if (root / "fail").exists():
    sys.exit((root / "fail").read_text())
print("Resolved 1 package in 1ms", file=sys.stderr, flush=True)
venv = pathlib.Path(os.environ["UV_PROJECT_ENVIRONMENT"])
info = venv / "lib" / "python3.12" / "site-packages" / "one-1.dist-info"
info.mkdir(parents=True, exist_ok=True)
(info / "METADATA").touch()
(info / "RECORD").write_text("one.py,,\\n")
while (root / "hang").exists():
    time.sleep(0.05)
(info.parent / "one.py").touch()
(venv / "pyvenv.cfg").touch()
(venv / "bin").mkdir(exist_ok=True)
(venv / "bin" / "python").unlink(missing_ok=True)
(venv / "bin" / "python").symlink_to({python!r})
"""


class Clone:
    """A copied workspace and how to run set-up in it."""

    def __init__(self, root: Path):
        self.root = root
        shutil.copytree(ROOT / "ci", root / "ci", ignore=shutil.ignore_patterns("__pycache__"))
        for name in (
            "pyproject.toml",
            "plugin/pyproject.toml",
            "kernels/pyproject.toml",
            "tools/pyproject.toml",
        ):
            (root / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, root / name)
        shim = root / "vllm_torchtpu" / "virtual"
        shim.mkdir(parents=True)
        (shim / "build.py").write_text("")
        self.bin = root / "bin"
        self.bin.mkdir()
        (self.bin / "uv").write_text(FAKE_UV.format(python=sys._base_executable))
        (self.bin / "cc").write_text("#!/bin/sh\n")
        for program in self.bin.iterdir():
            program.chmod(0o755)
        self.environment = {
            **os.environ,
            "PATH": str(self.bin),
            "PYENV_ROOT": str(root),
            "CC": "cc",
        }

    def start(self) -> subprocess.Popen:
        command = [sys._base_executable, "-m", "ci.setup.bootstrap"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, cwd=self.root, env=self.environment, **pipes)

    def set_up(self) -> tuple[int, str, str]:
        process = self.start()
        out, err = process.communicate(timeout=60)
        assert "Traceback" not in err
        return process.returncode, out, err

    def calls(self) -> int:
        path = self.root / "calls"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def wait_for(self, path: str) -> None:
        deadline = time.monotonic() + 30
        while not (self.root / path).exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)


@pytest.fixture
def clone(tmp_path):
    (tmp_path / "clone").mkdir()
    return Clone(tmp_path / "clone")


def test_the_first_run_says_each_step_and_the_second_does_nothing(clone):
    code, out, err = clone.set_up()
    assert (code, err) == (0, "")
    assert [line[:5] for line in out.splitlines() if line.startswith("[")] == [
        f"[{n}/5]" for n in range(1, 6)
    ]
    assert "Resolved 1 package" in out
    assert clone.set_up() == (0, "", "")
    assert clone.calls() == 1


def test_a_change_of_the_declarations_is_installed_without_starting_over(clone):
    clone.set_up()
    with open(clone.root / "tools" / "pyproject.toml", "a") as file:
        file.write("# changed\n")
    code, out, _ = clone.set_up()
    assert (code, clone.calls()) == (0, 2)
    assert "rebuilding" not in out


def test_a_damaged_environment_is_made_again(clone):
    clone.set_up()
    (clone.root / ".venv/lib/python3.12/site-packages/one.py").unlink()
    code, out, _ = clone.set_up()
    assert code == 0
    assert "rebuilding .venv: one.py of one-1 is missing" in out
    assert clone.set_up() == (0, "", "")


def test_an_interrupted_run_says_so_and_the_next_repairs_it(clone):
    (clone.root / "hang").touch()
    process = clone.start()
    clone.wait_for(".venv/lib")
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err == "set-up: interrupted; run the same command again to go on\n"
    (clone.root / "hang").unlink()
    code, out, _ = clone.set_up()
    assert code == 0
    assert "rebuilding .venv" in out


def test_a_killed_run_whose_uv_lives_on_is_waited_for(clone):
    (clone.root / "hang").touch()
    process = clone.start()
    clone.wait_for(".venv/lib")
    process.kill()
    process.communicate(timeout=30)
    second = clone.start()
    assert "waiting for another set-up" in second.stdout.readline()
    (clone.root / "hang").unlink()
    second.communicate(timeout=30)
    assert second.returncode == 0
    assert clone.set_up() == (0, "", "")


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (
            "error: Request failed after 3 retries\n",
            "set-up: the package registry could not be reached;",
        ),
        ("error: No space left on device (os error 28)\n", "set-up: the disk became full;"),
        ("error: Failed to build `vllm`\n", "(error: Failed to build `vllm`); mend that"),
    ],
)
def test_a_failing_uv_is_one_sentence_and_an_exit_code(clone, output, said):
    (clone.root / "fail").write_text(output)
    code, _, err = clone.set_up()
    assert code == 1
    assert said in err
    assert err.count("\n") == 1


def test_a_machine_without_a_compiler_is_told_before_anything_is_downloaded(clone):
    (clone.bin / "cc").unlink()
    code, _, err = clone.set_up()
    assert (code, clone.calls()) == (1, 0)
    assert err.startswith("set-up: no C compiler found (cc);")
    assert err.count("\n") == 1


def test_a_shim_that_does_not_build_is_said_in_its_words_and_leaves_no_stamp(clone):
    build = clone.root / "vllm_torchtpu" / "virtual" / "build.py"
    build.write_text("raise SystemExit('virtual TPU: cc failed; mend it')")
    code, _, err = clone.set_up()
    assert code == 1
    assert err == "set-up: the virtual TPU's shim was not built: virtual TPU: cc failed; mend it\n"
    build.write_text("")
    assert clone.set_up()[0] == 0
    assert clone.calls() == 2
