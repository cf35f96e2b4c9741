"""The host replacement of vLLM's slot mapping kernel."""

import inspect

import torch
from vllm.v1.worker.block_table import ComputeSlotMappingKernel
from vllm_torchtpu.ops.slot_mapping import compute_slot_mapping

PAD = -1


def _launch(slots: torch.Tensor, num_tokens: int, max_num_tokens: int) -> None:
    empty = torch.zeros(1, dtype=torch.int64)
    compute_slot_mapping(
        num_tokens, max_num_tokens, empty, empty, empty, 1, slots, 16, 1, 0, 1, PAD, 1024
    )


def test_a_stale_mapping_does_not_survive():
    slots = torch.arange(12)
    _launch(slots, num_tokens=3, max_num_tokens=10)
    assert slots.tolist() == [PAD] * 10 + [10, 11]


def test_its_parameters_are_the_kernel_s():
    """vLLM forwards the launch by name."""
    kernel = ComputeSlotMappingKernel.kernel
    upstream = inspect.signature(getattr(kernel, "fn", kernel)).parameters
    assert list(inspect.signature(compute_slot_mapping).parameters) == list(upstream)
