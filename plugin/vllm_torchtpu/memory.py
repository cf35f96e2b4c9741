"""How much memory a device has, and how it is shared out between weights, activations and cache."""

import os
from dataclasses import dataclass

import psutil
import torch

from vllm_torchtpu import device, envs
from vllm_torchtpu.errors import TorchTpuError

_GIB = 1 << 30
# One virtual TPU takes this share of the host's RAM unless the user says otherwise.
VIRTUAL_SHARE_OF_RAM = 0.25


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


def _ram_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


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
            f"{self.total / _GIB:.2f} GiB, of which {self.usable / _GIB:.2f} may be used: weights "
            f"{self.weights / _GIB:.2f}, activations {self.activations / _GIB:.2f}, KV cache "
            f"{self.kv_cache / _GIB:.2f}"
        )


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
                + _virtual_advice()
            )
        return budget.kv_cache
    needed = budget.weights + budget.activations + requested
    if needed > budget.total:
        raise TorchTpuError(
            f"--kv-cache-memory-bytes: found {requested} ({requested / _GIB:.2f} GiB), which with "
            f"weights ({budget.weights / _GIB:.2f}) and activations "
            f"({budget.activations / _GIB:.2f}) needs {needed / _GIB:.2f} GiB of "
            f"{budget.total / _GIB:.2f}; lower it" + _virtual_advice()
        )
    return requested


def _virtual_advice() -> str:
    found = device.resolve()
    if found is None or found.kind != "virtual":
        return ""
    return ", or give the virtual TPU more by TORCHTPU_VIRTUAL_MEMORY_GIB"
