"""How much memory a device has, and how it is shared out between weights, activations and cache."""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

import psutil
import torch

from vllm_torchtpu import device, envs
from vllm_torchtpu.errors import TorchTpuError

_GIB = 1 << 30
# One virtual TPU takes this share of the host's RAM unless the user says otherwise.
VIRTUAL_SHARE_OF_RAM = 0.25
# cgroup v2 and v1.
_CONTAINER_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def total_bytes() -> int:
    """Returns the memory of one device in bytes, without touching it.

    Raises:
        TorchTpuError: The TPU's generation is unknown to torch_tpu.
    """
    found = device.resolve()
    if found is not None and found.kind == "virtual":
        gib = envs.load().virtual_memory_gib
        if gib is not None:
            return int(gib * _GIB)
        return int(_ram_bytes() * VIRTUAL_SHARE_OF_RAM)
    from torch_tpu._internal.utils import hardware

    hbm = hardware.get_hbm_bytes_per_device()
    if hbm is None:
        raise TorchTpuError(
            "device: torch_tpu does not know this TPU's memory; use a torch-tpu that knows the "
            "generation, or TORCHTPU_DEVICE=virtual"
        )
    return hbm


def used_bytes() -> int:
    """Returns what this process holds on its device; a virtual TPU's memory is the process's own."""
    found = device.resolve()
    if found is not None and found.kind == "virtual":
        return psutil.Process().memory_info().rss
    return torch.accelerator.memory_allocated()


def _ram_bytes(limits: tuple[Path, ...] = _CONTAINER_LIMITS) -> int:
    """Returns this host's memory, or its container's share."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for limit in limits:
        with contextlib.suppress(OSError, ValueError):  # "max" is no limit
            found.append(int(limit.read_text()))
    return min(found)


@dataclass(frozen=True)
class Budget:
    """The shares of one device's memory, in bytes."""

    total: int
    usable: int
    weights: int
    activations: int

    @property
    def kv_cache(self) -> int:
        """What remains for the KV cache; may be negative."""
        return self.usable - self.weights - self.activations

    def __str__(self) -> str:
        return (
            f"{size(self.total)}, of which {size(self.usable)} may be used: weights "
            f"{size(self.weights)}, activations {size(self.activations)}, KV cache "
            f"{size(max(self.kv_cache, 0))}"
        )


def size(count: int) -> str:
    """Writes a number of bytes for people."""
    if count >= _GIB:
        return f"{count / _GIB:.2f} GiB"
    return f"{count / (1 << 20):.2f} MiB"


def kv_cache_bytes(budget: Budget, requested: int | None) -> int:
    """Returns the bytes of the KV cache: those requested, or all that remain.

    Args:
        budget: The device's shares; `usable` follows --gpu-memory-utilization.
        requested: --kv-cache-memory-bytes, which replaces --gpu-memory-utilization.

    Raises:
        TorchTpuError: It does not fit; the sentence carries the numbers.
    """
    if requested is None:
        if budget.kv_cache <= 0:
            raise TorchTpuError(
                f"memory: the device has {budget}; raise --gpu-memory-utilization, lower "
                "--max-num-batched-tokens or --max-num-seqs, or use a smaller model"
                + virtual_advice()
            )
        return budget.kv_cache
    needed = budget.weights + budget.activations + requested
    if needed > budget.total:
        raise TorchTpuError(
            f"--kv-cache-memory-bytes: found {requested} ({size(requested)}), which with weights "
            f"({size(budget.weights)}) and activations ({size(budget.activations)}) needs "
            f"{size(needed)} of the device's {size(budget.total)}; lower it" + virtual_advice()
        )
    return requested


def virtual_advice() -> str:
    """Returns what more a user of the virtual TPU can do, as the end of a sentence."""
    found = device.resolve()
    if found is None or found.kind != "virtual":
        return ""
    return ", or give the virtual TPU more by TORCHTPU_VIRTUAL_MEMORY_GIB"
