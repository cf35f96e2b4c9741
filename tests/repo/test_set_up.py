"""What set-up decides: the machine, the interpreter, uv, and whether .venv is whole."""

import json
import os
import sys
from collections import namedtuple

import pytest

from ci.setup import environment, interpreter, machine, pins, uv
from ci.setup.failure import SetupFailureError

Usage = namedtuple("Usage", "total used free")


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_supported_machine_has_no_problems(tmp_path):
    assert machine.platform_problem("Linux", "x86_64") is None
    assert machine.disk_problem(tmp_path, lambda path: Usage(0, 0, 10**10)) is None


def test_an_unsupported_machine_is_named():
    assert "Darwin on arm64" in machine.platform_problem("Darwin", "arm64")


def test_too_little_disk_is_said_with_both_numbers(tmp_path):
    sentence = machine.disk_problem(tmp_path, lambda path: Usage(0, 0, 1_500_000_000))
    assert sentence.startswith(f"1.5 GB are free in {tmp_path}, 10 are needed;")


def test_a_missing_compiler_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    assert "cc, gcc, clang" in machine.compiler_problem()
    monkeypatch.setenv("CC", "icx -O2")
    assert "(icx)" in machine.compiler_problem()
    script(tmp_path / "icx", "")
    assert machine.compiler_problem() is None


def test_the_interpreter_is_run_and_not_only_looked_at(tmp_path):
    shim = script(tmp_path / "python3.12", "echo 'command not found' >&2; exit 127")
    old = script(tmp_path / "python3.11", "echo 3 11 cpython 8 /usr/bin/python3.11")
    thirty_two_bit = script(tmp_path / "python32", "echo 3 12 cpython 4 /usr/bin/python3.12")
    good = script(tmp_path / "python3.13", "echo 3 13 cpython 8 /opt/with a space/python3.13")
    assert [interpreter.base(str(path)) for path in (shim, old, thirty_two_bit, good)] == [
        None,
        None,
        None,
        "/opt/with a space/python3.13",
    ]


def test_of_a_virtual_environment_the_base_is_taken():
    assert interpreter.base(sys.executable) == sys._base_executable


def test_pyenv_versions_are_found_behind_a_useless_path(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(script(tmp_path / "bin" / "python3", "exit 1")))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert interpreter.find() is None
    script(tmp_path / "versions" / "3.13.0" / "bin" / "python", "echo 3 13 cpython 8 $0")
    assert interpreter.find().endswith("3.13.0/bin/python")
    script(tmp_path / "versions" / "3.12.1" / "bin" / "python", "echo 3 12 cpython 8 $0")
    assert interpreter.find().endswith("3.12.1/bin/python")


def test_a_new_enough_uv_on_path_is_used_and_an_old_one_is_not(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    script(tmp_path / "uv", "echo uv 0.13.2 '(x86_64-unknown-linux-gnu)'")
    assert uv.find_or_install(tmp_path / "own", "python3", print) == str(tmp_path / "uv")
    script(tmp_path / "uv", "echo uv 0.5.0")
    own = script(tmp_path / "own" / "bin" / "uv", "echo uv 0.13.9")
    assert uv.find_or_install(tmp_path / "own", "python3", print) == str(own)


def test_no_way_to_get_uv_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    python = script(tmp_path / "python3", "exit 1")
    with pytest.raises(SetupFailureError, match="neither venv nor pip"):
        uv.find_or_install(tmp_path / "own", str(python), print)


def test_without_venv_pip_alone_gets_uv(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    own = tmp_path / "own" / "bin"
    text = f'[ "$2" = venv ] && exit 1; [ "$3" = install ] || exit 0; /bin/mkdir -p {own}; '
    text += f"printf '#!/bin/sh\\necho uv 0.13.9\\n' > {own}/uv; /bin/chmod +x {own}/uv"
    python = script(tmp_path / "python3", text)
    assert uv.find_or_install(tmp_path / "own", str(python), lambda text: None) == str(own / "uv")


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ("error: failed to copy\n cause: No space left on device (os error 28)\n", uv.DISK_FULL),
        ("error: Request failed after 3 retries\n cause: dns error\n", uv.UNREACHABLE),
        (
            "ERROR: Could not find a version that satisfies uv (from versions: none)\n",
            uv.UNREACHABLE,
        ),
        (
            "Resolved 9\nerror: Failed to build `vllm`.\n cause: x\n",
            "uv failed (error: Failed to build `vllm`); mend that and run the command again",
        ),
        ("", "uv failed (no output); mend that and run the command again"),
    ],
)
def test_what_uv_says_becomes_one_sentence(output, sentence):
    assert uv.explain(output, "uv failed") == sentence


def test_pips_settings_hold_for_uv_unless_uv_has_its_own(tmp_path, monkeypatch):
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_INDEX_URL", "http://mirror/a")
    monkeypatch.setenv("PIP_CERT", "/etc/ssl/own.pem")
    monkeypatch.setenv("VIRTUAL_ENV", "/elsewhere")
    variables = uv.environment_variables(tmp_path)
    assert variables["UV_DEFAULT_INDEX"] == "http://mirror/a"
    assert variables["SSL_CERT_FILE"] == "/etc/ssl/own.pem"
    assert variables["UV_PROJECT_ENVIRONMENT"] == str(tmp_path)
    assert "VIRTUAL_ENV" not in variables
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://mirror/b")
    assert uv.environment_variables(tmp_path)["UV_DEFAULT_INDEX"] == "http://mirror/b"


@pytest.fixture
def venv(tmp_path):
    """A small complete environment with one distribution."""
    venv = tmp_path / ".venv"
    folder = venv / "lib" / "python3.12" / "site-packages"
    (folder / "one-1.dist-info").mkdir(parents=True)
    (folder / "one.py").write_text("12345")
    (folder / "one-1.dist-info" / "METADATA").write_text("")
    (folder / "one-1.dist-info" / "RECORD").write_text(
        "one.py,sha256=x,5\none-1.dist-info/RECORD,,\n"
    )
    script(venv / "bin" / "python", "")
    (venv / "pyvenv.cfg").write_text("")
    (tmp_path / "pyproject.toml").write_text("")
    return venv


def test_a_complete_environment_is_current_once_it_is_stamped(venv):
    root = venv.parent
    assert environment.damage(venv) is None
    assert not environment.is_current(root, venv)
    environment.write_stamp(root, venv)
    assert environment.is_current(root, venv)
    (root / "pyproject.toml").write_text("changed")
    assert not environment.is_current(root, venv)


def test_a_copied_environment_or_a_mangled_stamp_is_not_current(venv):
    root = venv.parent
    environment.write_stamp(root, venv)
    stamp = venv / environment.STAMP
    stamp.write_text(json.dumps({**json.loads(stamp.read_text()), "root": "/elsewhere"}))
    assert not environment.is_current(root, venv)
    stamp.write_text("{")
    assert not environment.is_current(root, venv)


DAMAGES = {
    "a file is gone": (lambda folder, venv: os.remove(folder / "one.py"), "one.py of one-1"),
    "a file is cut short": (
        lambda folder, venv: (folder / "one.py").write_text("1"),
        "one.py of one-1",
    ),
    "a RECORD is gone": (
        lambda folder, venv: os.remove(folder / "one-1.dist-info/RECORD"),
        "RECORD of one-1",
    ),
    "Python is gone": (
        lambda folder, venv: os.remove(venv / "bin" / "python"),
        "bin/python does not run",
    ),
    "the configuration is gone": (
        lambda folder, venv: os.remove(venv / "pyvenv.cfg"),
        "pyvenv.cfg",
    ),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_damage_is_noticed_and_named(venv, kind):
    environment.write_stamp(venv.parent, venv)
    hurt, said = DAMAGES[kind]
    hurt(environment.site_packages(venv), venv)
    assert said in environment.damage(venv)
    assert not environment.is_current(venv.parent, venv)


def test_a_whole_distribution_that_vanished_is_noticed(venv):
    environment.write_stamp(venv.parent, venv)
    (environment.site_packages(venv) / "one-1.dist-info").rename(venv / "gone")
    assert environment.damage(venv) is None
    assert not environment.is_current(venv.parent, venv)


def test_pins_keep_markers_only_where_a_package_has_several_versions():
    exported = (
        "# comment\n-e ./plugin\na==1 ; sys_platform == 'linux'\nb==1 ; x < '2'\nb==2 ; x >= '2'\n"
    )
    assert pins.requirements(exported) == ["a==1", "b==1 ; x < '2'", "b==2 ; x >= '2'"]


def test_pins_are_written_between_their_marks_and_read_back():
    empty = "[tool.uv]\n# pins: constraints\nx = []\n# pins: build constraints\ny = []\n# pins: end\nz = 1\n"
    text = pins.with_block(empty, "constraints", ["a==1", "b-c==2"])
    text = pins.with_block(text, "build constraints", ["d==3"])
    assert 'constraint-dependencies = [\n  "a==1",\n  "b-c==2",\n]\n' in text
    assert text.endswith('build-constraint-dependencies = [\n  "d==3",\n]\n# pins: end\nz = 1\n')
    assert pins.pinned(text) == {"a", "b-c"}
