"""Allocates the KV cache in the layout of the attention op."""

from collections.abc import Iterator

import torch
from vllm.v1.kv_cache_interface import AttentionSpec, KVCacheConfig, UniformTypeKVCacheSpecs

from vllm_torchtpu.errors import TorchTpuError


def allocate(config: KVCacheConfig, device: torch.device) -> dict[str, torch.Tensor]:
    """Returns each layer's cache, zeroed; layers that vLLM overlays share one tensor.

    vLLM places layers in one address range per group and lets groups overlay each other, since a
    block belongs to one group at a time. Layers at the same address get the same tensor.

    Raises:
        TorchTpuError: Overlaid layers differ in shape or dtype, or blocks are padded.
    """
    from vllm_torchtpu.ops.paged_attention import kv_cache_shape

    by_address: dict[int, torch.Tensor] = {}
    caches: dict[str, torch.Tensor] = {}
    for name, address, num_blocks, stride in _placements(config):
        spec = _spec(config, name)
        shape = kv_cache_shape(num_blocks, spec.num_kv_heads, spec.head_size, spec.block_size)
        if spec.page_size_bytes != stride or spec.head_size != spec.head_size_v:
            raise TorchTpuError(
                f"KV cache of {name}: pages of {spec.page_size_bytes} bytes at a stride of {stride} "
                "are not supported; use a model whose layers have equal heads and head sizes"
            )
        known = by_address.get(address)
        if known is None:
            known = by_address[address] = torch.zeros(shape, dtype=spec.dtype, device=device)
        if known.shape != shape or known.dtype != spec.dtype:
            raise TorchTpuError(
                f"KV cache of {name}: shape {shape} shares memory with shape {tuple(known.shape)}, "
                "which is not supported; pass --disable-hybrid-kv-cache-manager"
            )
        caches[name] = known
    return caches


def _placements(config: KVCacheConfig) -> Iterator[tuple[str, int, int, int]]:
    """Yields (layer, address in bytes, blocks, bytes from block to block)."""
    for tensor in config.kv_cache_tensors:
        for index, name in enumerate(tensor.layers):
            address = tensor.offset + index * tensor.layer_stride
            yield name, address, config.num_blocks_of(tensor), tensor.block_stride


def _spec(config: KVCacheConfig, layer: str) -> AttentionSpec:
    group = next(g for g in config.kv_cache_groups if layer in g.layer_names)
    spec = group.kv_cache_spec
    if isinstance(spec, UniformTypeKVCacheSpecs):
        spec = spec.kv_cache_specs[layer]
    assert isinstance(spec, AttentionSpec)
    return spec
