"""How the device's memory is shared out, and what does not fit."""

import os

import pytest
from vllm_torchtpu import memory
from vllm_torchtpu.device import Device
from vllm_torchtpu.errors import TorchTpuError
from vllm_torchtpu.memory import Budget, kv_cache_bytes

GIB = 1024**3
MIB = 1024**2


@pytest.fixture
def kind(monkeypatch):
    """A function that makes this process's device virtual, a TPU, or none."""

    def choose(kind: str | None) -> None:
        found = None if kind is None else Device(kind, "the test says so")
        monkeypatch.setattr(memory.device, "resolve", lambda: found)

    choose("virtual")
    return choose


# -- the virtual TPU's memory


def test_the_variable_gives_the_virtual_tpu_s_memory(kind, monkeypatch):
    monkeypatch.setenv("TORCHTPU_VIRTUAL_MEMORY_GIB", "1.5")
    assert memory.total_bytes() == 1536 * MIB


def test_the_default_is_a_quarter_of_the_host_s_ram(kind, monkeypatch):
    monkeypatch.delenv("TORCHTPU_VIRTUAL_MEMORY_GIB", raising=False)
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1_000_000}
    monkeypatch.setattr(os, "sysconf", sizes.__getitem__)
    assert memory.total_bytes() == 1_024_000_000


# -- the budget


def test_the_cache_gets_what_weights_and_activations_leave(kind):
    budget = Budget(total=16 * GIB, usable=14 * GIB, weights=9 * GIB, activations=2 * GIB)
    assert budget.kv_cache == 3 * GIB
    assert kv_cache_bytes(budget, None) == 3 * GIB


def test_the_budget_reads_as_one_phrase_with_all_numbers(kind):
    budget = Budget(total=16 * GIB, usable=14 * GIB, weights=9 * GIB, activations=3 * MIB // 2)
    assert str(budget) == (
        "16.00 GiB, of which 14.00 GiB may be used: weights 9.00 GiB, activations 1.50 MiB, "
        "KV cache 5.00 GiB"
    )


def test_a_negative_remainder_is_shown_as_none():
    assert str(Budget(total=GIB, usable=GIB, weights=2 * GIB, activations=0)).endswith(
        "KV cache 0.00 MiB"
    )


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0.00 MiB"), (MIB, "1.00 MiB"), (GIB - 1, "1024.00 MiB"), (GIB, "1.00 GiB")],
)
def test_sizes_are_written_in_the_unit_that_fits(count, text):
    assert memory.size(count) == text


@pytest.mark.parametrize("weights", [4 * GIB, 5 * GIB])
def test_nothing_left_for_the_cache_is_refused_with_the_numbers(kind, weights):
    budget = Budget(total=8 * GIB, usable=4 * GIB, weights=weights, activations=0)
    with pytest.raises(TorchTpuError) as refused:
        kv_cache_bytes(budget, None)
    sentence = str(refused.value)
    assert sentence.startswith("memory: the device has 8.00 GiB, of which 4.00 GiB may be used")
    assert memory.size(weights) in sentence
    assert "--gpu-memory-utilization" in sentence
    assert sentence.endswith("TORCHTPU_VIRTUAL_MEMORY_GIB")


def test_one_byte_is_a_cache(kind):
    budget = Budget(total=8 * GIB, usable=4 * GIB, weights=4 * GIB - 1, activations=0)
    assert kv_cache_bytes(budget, None) == 1


def test_a_requested_size_replaces_the_utilization(kind):
    """4 + 1 + 3 GiB fill the device of 8, although only 2 are usable by utilization."""
    budget = Budget(total=8 * GIB, usable=2 * GIB, weights=4 * GIB, activations=GIB)
    assert kv_cache_bytes(budget, 3 * GIB) == 3 * GIB


def test_one_byte_more_than_the_device_has_is_refused_with_the_numbers(kind):
    budget = Budget(total=8 * GIB, usable=2 * GIB, weights=4 * GIB, activations=GIB)
    with pytest.raises(TorchTpuError) as refused:
        kv_cache_bytes(budget, 3 * GIB + 1)
    sentence = str(refused.value)
    assert sentence.startswith(f"--kv-cache-memory-bytes: found {3 * GIB + 1} (3.00 GiB)")
    for part in ("weights (4.00 GiB)", "activations (1.00 GiB)", "the device's 8.00 GiB"):
        assert part in sentence


@pytest.mark.parametrize("device", ["tpu", None])
def test_only_the_virtual_tpu_can_be_given_more(kind, device):
    kind(device)
    assert memory.virtual_advice() == ""
    budget = Budget(total=8 * GIB, usable=4 * GIB, weights=4 * GIB, activations=0)
    with pytest.raises(TorchTpuError) as refused:
        kv_cache_bytes(budget, None)
    assert "TORCHTPU" not in str(refused.value)


def test_the_virtual_tpu_s_use_is_the_process_s(kind):
    held = bytearray(os.urandom(64 * MIB))
    with_it = memory.used_bytes()
    assert with_it > len(held)
    del held
    assert memory.used_bytes() < with_it - 32 * MIB


def test_a_container_s_limit_counts_if_it_is_lower(tmp_path):
    limit = tmp_path / "memory.max"
    host = memory._ram_bytes((limit,))
    limit.write_text("max\n")
    assert memory._ram_bytes((limit,)) == host
    limit.write_text("1048576\n")
    assert memory._ram_bytes((limit,)) == 1048576
    limit.write_text(str(10**18))
    assert memory._ram_bytes((limit,)) == host
