"""The persistent compilation cache: who may own it, and that a second process compiles nothing."""

import concurrent.futures
import logging
import os
import shutil
from pathlib import Path

import pytest
from vllm_torchtpu import envs
from vllm_torchtpu.compile import cache
from vllm_torchtpu.errors import TorchTpuError

ROOT = "TORCH_TPU_TIER3_COMPILATION_CACHE_ROOT"
NAME = "TORCH_TPU_TIER2_COMPILATION_CACHE"
BACKUP = "TORCH_TPU_INTERNAL_TIER3_COMPILATION_CACHE_LOCAL_BACKUP_TASK"
PICKLES = "TORCHINDUCTOR_AUTOGRAD_CACHE"
ONE_SENTENCE = r"^VLLM_XLA_CACHE_PATH: [^\n]+; [^\n]+$"


@pytest.fixture
def top(monkeypatch, tmp_path) -> Path:
    """A cache path of this test, in a process that has configured none."""
    for name in (ROOT, NAME, BACKUP, PICKLES):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("VLLM_XLA_CACHE_PATH", str(tmp_path / "xla"))
    monkeypatch.setattr(cache, "_SHARED_MEMORY", tmp_path / "no shared memory yet")
    return tmp_path / "xla"


def configure(kind: str = "virtual") -> Path:
    """The store, which there is."""
    directory = cache.configure(kind)
    assert directory is not None
    return directory


def test_the_store_lies_under_the_path_by_device_and_versions(top):
    directory = configure()
    assert directory.parent == top / "virtual"
    assert envs.current(ROOT) == str(directory)
    for part in ("torch-", "torch_tpu-", "jax-", "cpu-", "shim-"):
        assert part in directory.name
    assert cache.configure("virtual") == directory


def test_a_tpu_s_store_names_libtpu_instead_of_the_virtual_tpu(top):
    directory = configure("tpu")
    assert directory.parent == top / "tpu"
    assert "libtpu-" in directory.name
    assert "shim-" not in directory.name


def test_the_store_is_private(top):
    directory = configure()
    assert directory.stat().st_mode & 0o777 == 0o700


def test_an_empty_path_keeps_nothing(top, monkeypatch):
    monkeypatch.setenv("VLLM_XLA_CACHE_PATH", "")
    assert cache.configure("virtual") is None
    assert not envs.current(ROOT)


def test_a_root_that_is_set_already_stands(top, monkeypatch):
    monkeypatch.setenv(ROOT, "/chosen")
    assert cache.configure("virtual") == Path("/chosen")
    assert not top.exists()


@pytest.mark.parametrize("path", [None, ""])
def test_torch_s_pickles_are_off_with_and_without_a_store(top, monkeypatch, path):
    if path is not None:
        monkeypatch.setenv("VLLM_XLA_CACHE_PATH", path)
    cache.configure("virtual")
    assert envs.current(PICKLES) == "0"


def test_the_name_in_shared_memory_lives_and_dies_with_the_store(top, monkeypatch):
    names = []
    for _ in range(2):
        monkeypatch.setenv(ROOT, "")
        cache.configure("virtual")
        names.append(envs.current(NAME))
    assert names[0] == names[1]
    shutil.rmtree(top)
    monkeypatch.setenv(ROOT, "")
    cache.configure("virtual")
    assert envs.current(NAME) not in names


def test_processes_that_start_at_once_agree_on_the_name(tmp_path):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        names = set(pool.map(lambda _: cache._shared_memory_name(tmp_path), range(32)))
    assert len(names) == 1
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_path_that_others_can_write_is_refused(top, mode):
    top.mkdir()
    top.chmod(mode)
    with pytest.raises(TorchTpuError, match=ONE_SENTENCE) as raised:
        cache.configure("virtual")
    assert f"chmod go-w {top}" in str(raised.value)
    assert not envs.current(ROOT)


def test_a_store_that_others_can_write_is_refused(top, monkeypatch):
    configure().chmod(0o777)
    monkeypatch.setenv(ROOT, "")
    with pytest.raises(TorchTpuError, match=ONE_SENTENCE):
        cache.configure("virtual")


def test_a_path_of_another_user_is_refused(top, monkeypatch):
    top.mkdir()
    monkeypatch.setattr(cache.os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(TorchTpuError, match="belongs to user"):
        cache.configure("virtual")


def test_a_path_below_a_file_is_refused(top):
    top.touch()
    with pytest.raises(TorchTpuError, match=ONE_SENTENCE):
        cache.configure("virtual")


def test_shared_memory_of_another_user_turns_the_store_off_with_a_warning(
    top, monkeypatch, tmp_path, caplog
):
    monkeypatch.setattr(logging.getLogger("vllm"), "propagate", True)
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setattr(cache, "_SHARED_MEMORY", shared)
    assert cache.configure("virtual") is None
    assert not envs.current(ROOT)
    assert "No executables are kept" in caplog.text


def test_a_host_without_shared_memory_keeps_nothing(top, monkeypatch, tmp_path):
    monkeypatch.setattr(cache, "_SHARED_MEMORY", tmp_path / "no" / "shm")
    assert cache.configure("virtual") is None
    assert not envs.current(ROOT)


SCALE = """
import sys, warnings
warnings.simplefilter("ignore")
from vllm_torchtpu import device
device.initialise()
import jax, torch
from torch_tpu._internal.pallas.pallas import jax_op
from vllm_torchtpu.compile import counter
factor = float(sys.argv[1])
@jax_op("test::scale")
def scale(x: jax.Array) -> jax.Array:
    return x * factor
compiled = torch.compile(lambda x: scale(x) + 1, backend="tpu", fullgraph=True)
results = [compiled(torch.ones(n, device="tpu")).sum().item() / n for n in (3, 4)]
print(*results, counter.compilation_count(), counter.executable_count())
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_second_start_compiles_nothing_and_a_changed_kernel_is_compiled(run, tmp_path):
    """Each start is two processes at once; before the second, shared memory is lost as by a reboot.

    In the third, executables come from shared memory that a reading process has filled.
    """
    variables = {"TORCHTPU_DEVICE": "virtual", "VLLM_XLA_CACHE_PATH": str(tmp_path / "xla")}

    def start(*factors: str) -> list[list[float]]:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            both = list(pool.map(lambda factor: run(SCALE, factor, **variables), factors))
        assert [done.returncode for done in both] == [0, 0], both
        return [[float(word) for word in done.stdout.split()] for done in both]

    def lose_shared_memory() -> None:
        (name,) = (tmp_path / "xla").rglob(cache._TOKEN)
        shutil.rmtree(Path("/dev/shm/torch_tpu_cache") / name.read_text())

    first, other = start("2", "2")
    assert first[:2] == other[:2] == [3, 3]
    assert first[2] + other[2] > 0

    lose_shared_memory()
    same, changed = start("2", "5")
    assert same == [3, 3, 0, first[3]]
    assert changed[:2] == [6, 6]
    assert changed[2] > 0

    assert start("2", "5") == [[3, 3, 0, first[3]], [6, 6, 0, first[3]]]
    lose_shared_memory()
