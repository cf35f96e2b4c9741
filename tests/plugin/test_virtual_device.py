"""The virtual TPU at work, each time in a fresh process of a plain shell."""

import re

import pytest

pytestmark = pytest.mark.slow

INITIALISE = """
from vllm_torchtpu import device
device.initialise()
"""

INITIALISE_IN_THREADS = """
import concurrent.futures
from vllm_torchtpu import device
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    found = {pool.submit(device.initialise) for _ in range(8)}
assert {future.result().kind for future in found} == {"virtual"}
"""

COMPUTE = """
import torch
x = torch.randn(4, 8)
y = x.to("tpu")
assert y.device.type == "tpu", y.device
eager = y @ y.t()
assert eager.device.type == "tpu", eager.device
torch.testing.assert_close(eager.cpu(), x @ x.t())
compiled = torch.compile(lambda a: torch.softmax(a @ a.t(), -1) * 2, backend="tpu", fullgraph=True)
torch.testing.assert_close(compiled(y).cpu(), torch.softmax(x @ x.t(), -1) * 2)
print("computed")
"""

LIBTPU = """
print("libtpu" if any("libtpu.so" in line for line in open("/proc/self/maps")) else "no libtpu")
"""


def test_early_it_computes_without_libtpu_and_without_a_word(run):
    done = run(INITIALISE_IN_THREADS + COMPUTE + LIBTPU, TORCHTPU_DEVICE="virtual")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n") == ["computed", "no libtpu", ""]
    assert done.stderr == ""


def test_late_after_torch_has_loaded_libtpu_it_computes_and_children_skip_libtpu(run):
    child = 'import torch, sys; print("torch_tpu" in sys.modules)'
    script = "import torch" + LIBTPU + INITIALISE + COMPUTE
    script += f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}])\n"
    done = run(script, TORCHTPU_DEVICE="virtual", PYTHONUNBUFFERED="1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["libtpu", "computed", "False"]


def test_too_late_is_one_sentence(run, tmp_path):
    """Another library serves torch_tpu already: a copy of ours, for want of a TPU."""
    script = """
import os, shutil, sys
from vllm_torchtpu import device
from vllm_torchtpu.errors import exit_with_sentence
from vllm_torchtpu.virtual import build
shutil.copy(build.build(), sys.argv[1])
os.environ.update(TPU_LIBRARY_PATH=sys.argv[1], TPU_SKIP_MDS_QUERY="1")
import torch, torch_tpu._loader
torch_tpu._loader._init_device("tpu")
torch.empty(1, device="tpu").cpu()
with exit_with_sentence():
    device.initialise()
"""
    done = run(script, str(tmp_path / "other.so"), TORCHTPU_DEVICE="virtual")
    assert done.returncode == 1
    sentences = [line for line in done.stderr.splitlines() if line.startswith("virtual TPU: ")]
    assert len(sentences) == 1
    assert re.search(r"was in use in this process before .*; import vllm before", sentences[0])
    assert "Traceback" not in done.stderr


def test_too_late_after_libtpu_has_failed_is_one_sentence(run):
    script = """
import torch, torch_tpu._loader
torch_tpu._loader._init_device("tpu")
try:
    torch.zeros(1).to("tpu")
except RuntimeError:
    print("libtpu failed", flush=True)
from vllm_torchtpu import device
from vllm_torchtpu.errors import exit_with_sentence
with exit_with_sentence():
    device.initialise()
"""
    done = run(script, TORCHTPU_DEVICE="virtual", TPU_SKIP_MDS_QUERY="1")
    assert done.stdout == "libtpu failed\n"
    assert done.returncode == 1
    assert "was in use in this process before" in done.stderr
    assert "Traceback" not in done.stderr


DONATION = (
    INITIALISE
    + """
import time, warnings
warnings.simplefilter("ignore")
import jax, torch
from torch_tpu._internal.pallas.pallas import jax_op

MIB = 256

def write(cache: jax.Array, new: jax.Array, slots: jax.Array) -> tuple[jax.Array, jax.Array]:
    cache = cache.at[slots].set(new)
    return cache, cache[slots]

def compiled(name, **options):
    op = jax_op(f"test::{name}", write, **options)
    def step(cache, new, slots):
        written, read = op(cache, new, slots)
        cache.copy_(written)
        return read
    return torch.compile(step, backend="tpu", fullgraph=True)

def memory_kib(field):
    return next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith(field))

new = torch.ones(2, 64, device="tpu")
slots = torch.tensor([3, 5], dtype=torch.int32, device="tpu")
before = memory_kib("VmRSS")
for name, options in (("donated", {"donate_argnums": (0,)}), ("copied", {})):
    step = compiled(name, **options)
    cache = torch.zeros(MIB * 4096, 64, device="tpu")
    for _ in range(2):
        step(cache, new, slots).cpu()
    open("/proc/self/clear_refs", "w").write("5")  # forgets the peak
    times = []
    for _ in range(5):
        start = time.perf_counter()
        assert step(cache, new, slots).cpu().sum() == 128
        times.append(time.perf_counter() - start)
    print(name, min(times), (memory_kib("VmHWM") - before) / 1024 / MIB)
    assert cache.cpu()[3].sum() == 64 and cache.cpu().sum() == 128
    del cache
"""
)


def test_donation_is_in_place_by_time_and_memory(run):
    done = run(DONATION, TORCHTPU_DEVICE="virtual")
    assert done.returncode == 0, done.stderr
    donated, copied = (line.split() for line in done.stdout.splitlines())
    assert float(donated[1]) < float(copied[1]) / 5
    # The peak in caches: the one cache, or it and its copy.
    assert float(donated[2]) < 1.5
    assert float(copied[2]) > 1.9


def test_late_with_the_library_built_anew_in_between_it_still_replaces_libtpu(run, tmp_path):
    """The library moves after it was first named: torch_tpu holds libtpu's table all the same."""
    script = "import os, sys, torch" + LIBTPU
    script += "from vllm_torchtpu.virtual import overlay\noverlay.export()\n"
    script += "os.environ['TORCHTPU_CACHE_DIR'] = sys.argv[1]\n" + INITIALISE + COMPUTE
    done = run(script, str(tmp_path), TORCHTPU_DEVICE="virtual", PYTHONUNBUFFERED="1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["libtpu", "computed"]
