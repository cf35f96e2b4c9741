"""Host replacement of the one Triton kernel that vLLM's V1 runner launches on our path."""

import torch


def compute_slot_mapping(
    num_tokens: int,
    max_num_tokens: int,
    query_start_loc_ptr: torch.Tensor,
    positions_ptr: torch.Tensor,
    block_table_ptr: torch.Tensor,
    block_table_stride: int,
    slot_mapping_ptr: torch.Tensor,
    KV_CACHE_BLOCK_SIZE: int,
    TOTAL_CP_WORLD_SIZE: int,
    TOTAL_CP_RANK: int,
    CP_KV_CACHE_INTERLEAVE_SIZE: int,
    PAD_ID: int,
    BLOCK_SIZE: int,
) -> None:
    """Marks every slot as padding: our attention op finds the slots from the page table itself.

    The names are those of `vllm.v1.worker.block_table.ComputeSlotMappingKernel.kernel`, by which
    vLLM forwards the launch. A stale mapping would otherwise look like a valid one.
    """
    slot_mapping_ptr[:max_num_tokens].fill_(PAD_ID)
