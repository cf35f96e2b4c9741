"""VLLM_XLA_CACHE_PATH: a second process compiles nothing, a changed option what is new only."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.models.prompt import random_prompt

pytestmark = pytest.mark.engine

# Two token buckets (8 and 16) and one row bucket: few compilations, and 64 tokens are a new one.
OPTIONS = {"max_num_batched_tokens": 16, "max_num_seqs": 4, "gpu_memory_utilization": 0.2}
PROMPTS = [random_prompt(5, seed=60), random_prompt(40, seed=61)]

_SCRIPT = """
import json, sys
from tests.e2e.engine import engine, generate, greedy_params, tokens

def compilations(_):
    from vllm_torchtpu.compile.counter import compilation_count
    return compilation_count()

if __name__ == "__main__":
    directory, prompts, options = json.loads(sys.argv[1])
    with engine(directory, **options) as llm:
        at_start = llm.collective_rpc(compilations)
        found = tokens(generate(llm, prompts, greedy_params(8)))
        print("FOUND", json.dumps([*at_start, *llm.collective_rpc(compilations), found]), flush=True)
"""


def _run(directory: Path, cache: Path, **options: Any) -> tuple[int, list[list[int]]]:
    """Starts an engine in a process of its own; returns its compilations and greedy tokens."""
    request = json.dumps([str(directory), PROMPTS, OPTIONS | options])
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, request],
        env=_environment(cache),
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    # vLLM logs to standard output too.
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    start, end, found = json.loads(line.removeprefix("FOUND "))
    assert start == end, "something was compiled after warm-up"
    return end, found


def _environment(cache: Path) -> Mapping[str, str]:
    """Ours, without what this process's own plugin has exported for its children."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TORCH_TPU_")}
    root = str(Path(__file__).parents[2])
    return kept | {"VLLM_XLA_CACHE_PATH": str(cache), "PYTHONPATH": root}


@pytest.fixture(scope="module")
def directory(tiny_model):
    return tiny_model("llama")


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("xla")
    yield directory
    _lose_shared_memory(directory)


def _lose_shared_memory(cache: Path) -> None:
    """Removes the copies that torch_tpu holds in shared memory, as a reboot does."""
    (name,) = cache.rglob("shared-memory-name")
    shutil.rmtree(Path("/dev/shm/torch_tpu_cache") / name.read_text(), ignore_errors=True)


@pytest.fixture(scope="module")
def first(directory, cache) -> tuple[int, list[list[int]]]:
    """The first engine with an empty cache."""
    return _run(directory, cache)


def test_a_second_process_compiles_nothing(first, directory, cache):
    """From the files alone, so a restart of the machine changes nothing."""
    compilations, found = first
    assert compilations > 0
    _lose_shared_memory(cache)
    assert _run(directory, cache) == (0, found)


def test_other_options_compile_only_what_is_new(first, directory, cache):
    """A longer step adds the bucket of 64 tokens; a page count that rounds alike adds nothing."""
    compilations, found = first
    new, same = _run(directory, cache, max_num_batched_tokens=64)
    assert 0 < new < compilations
    assert same == found


def test_a_damaged_executable_is_compiled_again(first, directory, cache):
    _, found = first
    executables = sorted(cache.rglob("*.bin"))
    assert executables
    for path in executables:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    _lose_shared_memory(cache)
    new, same = _run(directory, cache)
    assert new > 0
    assert same == found
