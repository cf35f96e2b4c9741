"""The demo's command line: help with an example, failures in a sentence, signals with a clean end."""

import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from demo import cli
from demo.errors import DemoError
from demo.run import ROOT


@pytest.fixture
def failing(monkeypatch):
    """Makes the demo raise a given error."""

    def fail(error: BaseException) -> None:
        def run(self):
            raise error

        monkeypatch.setattr(cli.Demo, "run", run)

    return fail


def test_help_has_an_example():
    result = CliRunner().invoke(cli.app, ["--help"])
    assert result.exit_code == 0
    assert "make demo ARGS=" in result.output


def test_a_failure_is_its_sentence_and_exit_code_1(failing, capsys):
    failing(DemoError("demo: it broke; mend it"))
    result = CliRunner().invoke(cli.app, [])
    assert result.exit_code == 1
    assert result.stderr == "demo: it broke; mend it\n"


def test_ctrl_c_is_130_without_a_traceback(failing):
    failing(KeyboardInterrupt())
    result = CliRunner().invoke(cli.app, [])
    assert result.exit_code == 130
    assert "Traceback" not in result.stderr


def test_a_bad_cache_variable_is_one_sentence():
    done = subprocess.run(
        [sys.executable, "-m", "demo"],
        env={"PATH": "/usr/bin:/bin", "TORCHTPU_CACHE_DIR": "relative"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("TORCHTPU_CACHE_DIR: found 'relative'")
    assert done.stderr.count("\n") == 1


def test_sigterm_unwinds_the_stack():
    with pytest.raises(SystemExit) as ending:
        cli._exit_by_signal(signal.SIGTERM, None)
    assert ending.value.code == 143
