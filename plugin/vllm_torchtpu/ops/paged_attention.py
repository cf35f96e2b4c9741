"""torch op `torchtpu::paged_attention`: KV write and attention in one donated call."""

import jax
import torch
from torchtpu_kernels.ops import paged_attention as kernel

from vllm_torchtpu.ops.jax_op import jax_op


def _paged_attention(
    kv_cache: jax.Array,
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    page_table: jax.Array,
    cu_q_lens: jax.Array,
    kv_lens: jax.Array,
    scale: float,
    sliding_window: int,
    soft_cap: float,
) -> tuple[jax.Array, jax.Array]:
    out, kv_cache = kernel.paged_attention(
        q,
        k,
        v,
        kv_cache,
        page_table,
        cu_q_lens,
        kv_lens,
        scale=scale,
        sliding_window=sliding_window or None,
        soft_cap=soft_cap or None,
    )
    return kv_cache, out


# Donating the cache is what keeps the write in place; a separate scatter would copy the pool.
_op = jax_op("torchtpu::paged_attention", _paged_attention, donate_argnums=(0,))


@_op.register_fake
def _(kv_cache, q, *_rest):
    # The default fake kernel traces the JAX function on every call, seconds for a deep model.
    return torch.empty_like(kv_cache), torch.empty_like(q)


def paged_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    kv_cache: torch.Tensor,
    page_table: torch.Tensor,
    cu_q_lens: torch.Tensor,
    kv_lens: torch.Tensor,
    *,
    scale: float,
    sliding_window: int | None,
    soft_cap: float | None,
) -> torch.Tensor:
    """Writes k and v to `kv_cache` in place and returns the attention output, like q.

    Shapes, dtypes and semantics are those of `torchtpu_kernels.ops.paged_attention`.
    """
    new_cache, out = _op(
        kv_cache,
        q,
        k,
        v,
        page_table,
        cu_q_lens,
        kv_lens,
        scale,
        sliding_window or 0,
        soft_cap or 0.0,
    )
    if torch.compiler.is_compiling():
        kv_cache.copy_(new_cache)
    else:
        # Outside a graph nothing elides the copy of the whole pool.
        kv_cache.set_(new_cache)
    return out


def kv_cache_shape(
    num_blocks: int, num_kv_heads: int, head_size: int, block_size: int
) -> tuple[int, ...]:
    """Returns the shape of one layer's cache, as the kernel wants it."""
    return kernel.kv_cache_shape(num_blocks, num_kv_heads, head_size, block_size)
