"""Which layers share memory in the KV cache, and what the op's layout cannot hold."""

import pytest
import torch
from vllm.v1.kv_cache_interface import (
    FullAttentionSpec,
    KVCacheConfig,
    KVCacheGroupSpec,
    KVCacheTensor,
    SlidingWindowSpec,
    UniformTypeKVCacheSpecs,
)
from vllm_torchtpu.errors import TorchTpuError
from vllm_torchtpu.runner.kv_cache import allocate

CPU = torch.device("cpu")
BLOCKS = 5
SHAPE = {"block_size": 16, "num_kv_heads": 2, "head_size": 8, "dtype": torch.float32}
# 2 (k and v) * 16 tokens * 2 heads * 8 elements * 4 bytes.
PAGE_BYTES = 2048
LAYER_BYTES = BLOCKS * PAGE_BYTES


@pytest.fixture(autouse=True)
def _op(virtual_tpu):
    """The op's module declares itself to torch_tpu."""


def _full(**other) -> FullAttentionSpec:
    return FullAttentionSpec(**(SHAPE | other))


def _sliding(**other) -> SlidingWindowSpec:
    return SlidingWindowSpec(**(SHAPE | other), sliding_window=32)


def _tensor(*layers: str, offset: int = 0) -> KVCacheTensor:
    """Layer-outermost: each layer one contiguous region, pages outermost in it."""
    return KVCacheTensor(
        size=2 * LAYER_BYTES,
        layers=list(layers),
        layer_stride=LAYER_BYTES,
        block_stride=PAGE_BYTES,
        offset=offset,
    )


def _config(tensors: list[KVCacheTensor], groups: dict) -> KVCacheConfig:
    return KVCacheConfig(
        num_blocks=BLOCKS,
        kv_cache_tensors=tensors,
        kv_cache_groups=[KVCacheGroupSpec(list(names), spec) for names, spec in groups.items()],
    )


def test_each_layer_of_one_group_has_its_own_zeroed_cache():
    caches = allocate(_config([_tensor("a", "b")], {("a", "b"): _full()}), CPU)
    assert list(caches) == ["a", "b"]
    assert caches["a"] is not caches["b"]
    for cache in caches.values():
        assert cache.shape == (BLOCKS, 2, 2, 8, 16)
        assert cache.dtype == torch.float32
        assert not cache.any()
        assert cache.numel() * cache.element_size() == LAYER_BYTES


def test_overlaid_groups_share_tensors_by_address():
    """A block belongs to one group at a time, so groups use the same bytes."""
    tensors = [_tensor("full 0", "full 1"), _tensor("sliding 0", "sliding 1")]
    groups = {("full 0", "full 1"): _full(), ("sliding 0", "sliding 1"): _sliding()}
    caches = allocate(_config(tensors, groups), CPU)
    assert caches["full 0"] is caches["sliding 0"]
    assert caches["full 1"] is caches["sliding 1"]
    assert caches["full 0"] is not caches["full 1"]


def test_an_offset_is_part_of_the_address():
    tensors = [_tensor("full 0", "full 1"), _tensor("sliding", offset=LAYER_BYTES)]
    groups = {("full 0", "full 1"): _full(), ("sliding",): _sliding()}
    caches = allocate(_config(tensors, groups), CPU)
    assert caches["sliding"] is caches["full 1"]


def test_a_group_of_differing_specs_takes_each_layer_s_own():
    specs = {"a": _full(), "b": _full(dtype=torch.int32)}
    group = UniformTypeKVCacheSpecs(block_size=16, kv_cache_specs=specs)
    caches = allocate(_config([_tensor("a", "b")], {("a", "b"): group}), CPU)
    assert (caches["a"].dtype, caches["b"].dtype) == (torch.float32, torch.int32)


def test_the_dtype_is_the_spec_s():
    spec = _full(dtype=torch.bfloat16, block_size=32)
    caches = allocate(_config([_tensor("a")], {("a",): spec}), CPU)
    assert caches["a"].dtype == torch.bfloat16
    assert caches["a"].shape == (BLOCKS, 2, 2, 8, 32)


@pytest.mark.parametrize(
    "spec",
    [_full(page_size_padded=2 * PAGE_BYTES), _full(block_size=8), _full(head_size_v=4)],
    ids=["padded", "packed with others", "other value size"],
)
def test_pages_with_gaps_are_refused(spec):
    with pytest.raises(TorchTpuError, match=r"^KV cache of a: pages of [^\n]+; [^\n]+$"):
        allocate(_config([_tensor("a")], {("a",): spec}), CPU)


@pytest.mark.parametrize(
    "other",
    [_sliding(num_kv_heads=4, head_size=4), _sliding(dtype=torch.int32)],
    ids=["shape", "dtype"],
)
def test_overlaid_layers_that_differ_are_refused(other):
    tensors = [_tensor("a"), _tensor("b")]
    with pytest.raises(TorchTpuError, match=r"^KV cache of b: shape [^\n]+; [^\n]+$"):
        allocate(_config(tensors, {("a",): _full(), ("b",): other}), CPU)
