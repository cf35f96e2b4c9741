"""Building the virtual TPU's library, and what a user reads when that is impossible."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from vllm_torchtpu.errors import TorchTpuError
from vllm_torchtpu.virtual import build

ONE_SENTENCE = r"^virtual TPU: [^\n]+; [^\n]+$"


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch, tmp_path) -> Path:
    monkeypatch.setenv("TORCHTPU_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def compiler(path: Path, script: str) -> str:
    """Makes an executable that stands for a compiler."""
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_the_source_compiles_without_a_warning(tmp_path):
    macro = '-DTORCHTPU_CPU_PLUGIN="plugin.so"'
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
    sources = [str(path) for path in build.SOURCES if path.suffix == ".c"]
    subprocess.run([*build.compiler(), "-std=gnu11", *strict, macro, *sources], check=True)


def test_a_second_build_finds_the_first(monkeypatch):
    first = build.build()
    monkeypatch.setenv("CC", "/no/compiler")
    assert build.build() == first
    assert [path.name for path in first.parent.iterdir()] == [first.name]


def test_the_library_is_keyed_by_source_flags_and_plugin(monkeypatch, tmp_path):
    plugin = build.cpu_plugin()
    paths = [build.library_path(plugin), build.library_path(tmp_path / "elsewhere.so")]
    monkeypatch.setattr(build, "FLAGS", ("-O0",))
    paths.append(build.library_path(plugin))
    monkeypatch.undo()
    changed = tmp_path / "shim.c"
    changed.write_bytes(build.SOURCES[1].read_bytes() + b"\n")
    monkeypatch.setenv("TORCHTPU_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(build, "SOURCES", (build.SOURCES[0], changed, build.SOURCES[2]))
    paths.append(build.library_path(plugin))
    assert len(set(paths)) == len(paths)


def test_the_command_prints_the_path(run, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "vllm_torchtpu.virtual.build"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(done.stdout.strip()).is_file()


def test_two_processes_may_build_at_once(empty_cache):
    command = [sys.executable, "-m", "vllm_torchtpu.virtual.build"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = {process.communicate()[0] for process in both}
    assert [process.returncode for process in both] == [0, 0]
    (output,) = outputs
    assert [str(path) for path in empty_cache.iterdir()] == [output.strip()]


def test_no_compiler_is_one_sentence(monkeypatch):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(TorchTpuError, match=ONE_SENTENCE) as raised:
        build.build()
    assert "cc, gcc, clang" in str(raised.value)


def test_a_failing_compiler_is_one_sentence_and_leaves_nothing(monkeypatch, tmp_path, empty_cache):
    script = "echo 'shim.c:1: error: no headers' >&2; echo 'note' >&2; exit 3"
    monkeypatch.setenv("CC", compiler(tmp_path / "cc", script))
    with pytest.raises(TorchTpuError, match=ONE_SENTENCE) as raised:
        build.build()
    assert "status 3" in str(raised.value)
    assert "no headers" in str(raised.value)
    assert not list(empty_cache.iterdir())


def test_a_silent_failing_compiler_is_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("CC", compiler(tmp_path / "cc", "exit 1"))
    with pytest.raises(TorchTpuError, match=ONE_SENTENCE):
        build.build()


def test_a_compiler_with_arguments_in_cc_is_used(monkeypatch, tmp_path):
    real = shutil.which(build.compiler()[0])
    script = f'test "$1" = --extra || exit 9; shift; exec {real} "$@"'
    monkeypatch.setenv("CC", compiler(tmp_path / "cc", script) + " --extra")
    assert build.build().is_file()


def test_a_directory_that_cannot_be_made_is_one_sentence(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("TORCHTPU_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.raises(TorchTpuError, match=ONE_SENTENCE) as raised:
        build.build()
    assert "TORCHTPU_CACHE_DIR" in str(raised.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_directory_is_one_sentence(empty_cache):
    empty_cache.mkdir(mode=0o500)
    with pytest.raises(TorchTpuError, match=ONE_SENTENCE):
        build.build()


def test_a_missing_plugin_is_one_sentence(monkeypatch):
    monkeypatch.setattr(build.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(TorchTpuError, match=ONE_SENTENCE) as raised:
        build.build()
    assert build.CPU_PLUGIN_DISTRIBUTION in str(raised.value)


def fake_plugin(directory: Path) -> Path:
    """A package that stands before the real plugin's, still without its library."""
    package = directory / build.CPU_PLUGIN_PACKAGE
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    return package / build.CPU_PLUGIN_FILE


OPEN = """
from vllm_torchtpu import device
from vllm_torchtpu.errors import exit_with_sentence
with exit_with_sentence():
    device.prepare(device.Device("virtual", "test"))
"""


def test_an_incomplete_plugin_is_one_sentence(run, tmp_path):
    library = fake_plugin(tmp_path)
    done = run(OPEN, PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.startswith(f"virtual TPU: {library} is missing; ")
    assert done.stderr.count("\n") == 1


def test_a_broken_plugin_is_one_sentence(run, tmp_path):
    fake_plugin(tmp_path).write_bytes(b"not a library")
    done = run(OPEN, PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.startswith("virtual TPU: cannot load XLA's CPU PJRT plugin: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("int other;", "is not a PJRT plugin"),
        ("void *GetPjrtApi(void) { return 0; }", "is not a PJRT plugin"),
        (
            "static long api[200] = {1160, 0, 24, 0, 99L << 32}; void *GetPjrtApi(void) { return api; }",
            "PJRT API 0.99 with a table of 1160 bytes",
        ),
        (
            "static long api[200] = {1144, 0, 24, 0, 1}; void *GetPjrtApi(void) { return api; }",
            "PJRT API 1.0 with a table of 1144 bytes",
        ),
    ],
    ids=["no entry point", "no table", "other size", "other major version"],
)
def test_another_plugin_than_expected_is_one_sentence(run, tmp_path, source, found):
    library = fake_plugin(tmp_path)
    (tmp_path / "fake.c").write_text(source)
    command = [*build.compiler(), "-shared", "-fPIC", str(tmp_path / "fake.c"), "-o", str(library)]
    subprocess.run(command, check=True)
    done = run(OPEN, PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert found in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_damaged_library_is_one_sentence(run, tmp_path):
    done = run(
        "from vllm_torchtpu.virtual import build\nbuild.build().write_bytes(b'cut')\n" + OPEN,
        TORCHTPU_CACHE_DIR=str(tmp_path),
    )
    assert done.returncode == 1
    assert done.stderr.startswith("virtual TPU: cannot load ")
    assert "delete it" in done.stderr
    assert done.stderr.count("\n") == 1
