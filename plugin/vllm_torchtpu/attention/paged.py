"""The vLLM attention backend for MHA, GQA and MQA models over the paged KV cache."""

from dataclasses import dataclass

import torch
from vllm.config import VllmConfig
from vllm.v1.attention.backend import (
    AttentionBackend,
    AttentionImpl,
    AttentionLayer,
    AttentionMetadata,
    AttentionMetadataBuilder,
    AttentionType,
    CommonAttentionMetadata,
    MultipleOf,
)
from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend
from vllm.v1.kv_cache_interface import AttentionSpec
from vllm.v1.kv_cache_layout import KVCacheLayout

from vllm_torchtpu.errors import TorchTpuError
from vllm_torchtpu.fit import PREFERRED_BLOCK_TOKENS


@dataclass
class PagedMetadata(AttentionMetadata):
    """What every layer of one KV cache group needs, on the device and padded to its bucket.

    Attributes:
        page_table: int32 [max_num_seqs, max_pages].
        cu_q_lens: int32 [max_num_seqs + 1], the last value repeated for padded requests.
        kv_lens: int32 [max_num_seqs], 0 for padded requests.
    """

    page_table: torch.Tensor
    cu_q_lens: torch.Tensor
    kv_lens: torch.Tensor


class PagedMetadataBuilder(AttentionMetadataBuilder[PagedMetadata]):
    """Copies the host's batch description to the device."""

    def __init__(
        self,
        kv_cache_spec: AttentionSpec,
        layer_names: list[str],
        vllm_config: VllmConfig,
        device: torch.device,
    ) -> None:
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)

    def build(
        self,
        common_prefix_len: int,
        common_attn_metadata: CommonAttentionMetadata,
        fast_build: bool = False,
    ) -> PagedMetadata:
        """See the base class; the runner pads the batch before this is called."""
        common = common_attn_metadata
        return PagedMetadata(
            page_table=common.block_table_tensor.to(self.device),
            cu_q_lens=common.query_start_loc.to(self.device),
            kv_lens=common.seq_lens.to(self.device),
        )


@register_backend(AttentionBackendEnum.CUSTOM)
class PagedAttentionBackend(AttentionBackend):
    """Names the parts of the backend and what they support."""

    supported_dtypes = [torch.float32, torch.bfloat16, torch.float16]
    forward_includes_kv_cache_update = True

    @staticmethod
    def get_name() -> str:
        """The enum member under which vLLM knows an out-of-tree backend."""
        return "CUSTOM"

    @staticmethod
    def get_impl_cls() -> type["PagedAttentionImpl"]:
        """The per-layer implementation."""
        return PagedAttentionImpl

    @staticmethod
    def get_builder_cls() -> type[PagedMetadataBuilder]:
        """The per-step metadata builder."""
        return PagedMetadataBuilder

    @staticmethod
    def get_supported_kernel_block_sizes(kv_cache_spec=None) -> list[int | MultipleOf]:
        """Any block size; blocks are never split."""
        return [MultipleOf(1)]

    @classmethod
    def get_preferred_block_size(cls, default_block_size: int) -> int:
        """Used unless the user gives --block-size."""
        return PREFERRED_BLOCK_TOKENS

    @classmethod
    def supported_kv_cache_layouts(cls) -> tuple[KVCacheLayout, ...]:
        """One contiguous region per layer, pages outermost in it."""
        return (KVCacheLayout.LBHNC,)

    @classmethod
    def supports_sliding_window(cls) -> bool:
        """The op masks by window and starts at the window's first page."""
        return True


class PagedAttentionImpl(AttentionImpl[PagedMetadata]):
    """One layer's attention: its constants, and the call of the op."""

    def __init__(
        self,
        num_heads: int,
        head_size: int,
        scale: float,
        num_kv_heads: int | None = None,
        alibi_slopes: list[float] | None = None,
        sliding_window: int | None = None,
        kv_cache_dtype: str = "auto",
        logits_soft_cap: float | None = None,
        attn_type: str = AttentionType.DECODER,
        kv_sharing_target_layer_name: str | None = None,
        **unsupported: object,
    ) -> None:
        problems = [
            f"{name} (found {value!r})"
            for name, value, allowed in (
                ("alibi_slopes", alibi_slopes, None),
                ("attn_type", attn_type, AttentionType.DECODER),
                ("kv_sharing_target_layer_name", kv_sharing_target_layer_name, None),
                *((name, value, None) for name, value in unsupported.items()),
            )
            if value != allowed
        ]
        if problems:
            raise TorchTpuError(
                f"attention: found {', '.join(problems)}, which this model needs and the paged "
                "attention backend does not have; use a model without it"
            )
        self.num_heads = num_heads
        self.head_size = head_size
        self.scale = float(scale)
        self.num_kv_heads = num_kv_heads or num_heads
        self.kv_cache_dtype = kv_cache_dtype
        self.sliding_window = sliding_window
        self.logits_soft_cap = logits_soft_cap

    def forward(
        self,
        layer: AttentionLayer,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        kv_cache: torch.Tensor,
        attn_metadata: PagedMetadata,
        output: torch.Tensor,
        output_scale: torch.Tensor | None = None,
        output_block_scale: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Writes `key` and `value` [tokens, kv_heads, head_size] and fills `output` like `query`."""
        from vllm_torchtpu.ops.paged_attention import paged_attention

        output.copy_(
            paged_attention(
                query,
                key,
                value,
                kv_cache,
                attn_metadata.page_table,
                attn_metadata.cu_q_lens,
                attn_metadata.kv_lens,
                scale=self.scale,
                sliding_window=self.sliding_window,
                soft_cap=self.logits_soft_cap,
            )
        )
        return output
