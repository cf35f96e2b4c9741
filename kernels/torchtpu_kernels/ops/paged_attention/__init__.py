"""Attention over a paged KV cache, with the write of the new keys and values in the same op."""

from torchtpu_kernels.ops.paged_attention.api import kv_cache_shape, paged_attention

__all__ = ["kv_cache_shape", "paged_attention"]
