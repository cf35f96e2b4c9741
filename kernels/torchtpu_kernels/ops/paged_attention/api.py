"""The public function of the paged attention operation: it validates, then chooses."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from torchtpu_kernels.core.check import Problems
from torchtpu_kernels.ops.paged_attention.reference import paged_attention_reference


def kv_cache_shape(
    num_pages: int, num_kv_heads: int, head_dim: int, page_size: int
) -> tuple[int, int, int, int, int]:
    """Returns the shape of one layer's cache, `[pages, kv_heads, 2, head_dim, page_size]`.

    Keys are index 0 and values index 1 of the third axis. Tokens are innermost so that they lie
    on the TPU's lanes: every head_dim then keeps its natural size, with no padding to 128.
    """
    return (num_pages, num_kv_heads, 2, head_dim, page_size)


def paged_attention(
    q: Float[Array, "tokens heads head_dim"],
    k: Float[Array, "tokens kv_heads head_dim"],
    v: Float[Array, "tokens kv_heads head_dim"],
    kv_cache: Float[Array, "pages kv_heads 2 head_dim page"],
    page_table: Int[Array, "requests max_pages"],
    cu_q_lens: Int[Array, "requests+1"],
    kv_lens: Int[Array, " requests"],
    *,
    scale: float,
    sliding_window: int | None = None,
    soft_cap: float | None = None,
) -> tuple[Float[Array, "tokens heads head_dim"], Float[Array, "pages kv_heads 2 head_dim page"]]:
    """Writes this step's keys and values to the cache, then attends causally over it.

    The batch is ragged: request r owns tokens `cu_q_lens[r]:cu_q_lens[r + 1]`, which are the last
    ones of its `kv_lens[r]` tokens; prefill, chunked prefill and decode mix freely. The writes of
    all requests come before any read, so a request may read a page that another request of the
    same step fills. Tokens from `cu_q_lens[-1]` on are padding: they write nothing and their
    output is zero. What lies in cache slots that no request owns is never read into a result.

    Args:
        q: Queries, any float dtype.
        k: New keys, converted to the cache's dtype.
        v: New values, likewise.
        kv_cache: See `kv_cache_shape`; donate it, or XLA copies the pool on every call.
        page_table: int32 page numbers of each request, in token order.
        cu_q_lens: int32, non-decreasing, starts at 0; padded requests repeat the last value.
        kv_lens: int32 tokens of each request including the new ones; 0 for padded requests.
        scale: Multiplies the logits, commonly `head_dim ** -0.5`.
        sliding_window: A query sees itself and the `sliding_window - 1` tokens before it.
        soft_cap: Logits become `soft_cap * tanh(logits / soft_cap)`.

    Returns:
        The attention output in q's dtype, and the updated cache. Arithmetic is float32.

    Raises:
        ShapeError: Shapes or dtypes do not fit together; all problems in one sentence.
    """
    _check(q, k, v, kv_cache, page_table, cu_q_lens, kv_lens, sliding_window, soft_cap)
    return paged_attention_reference(
        q,
        k,
        v,
        kv_cache,
        page_table,
        cu_q_lens,
        kv_lens,
        scale=scale,
        sliding_window=sliding_window,
        soft_cap=soft_cap,
    )


def _check(
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    kv_cache: jax.Array,
    page_table: jax.Array,
    cu_q_lens: jax.Array,
    kv_lens: jax.Array,
    sliding_window: int | None,
    soft_cap: float | None,
) -> None:
    problems = Problems("paged_attention")
    require = problems.require
    tokens, heads, head_dim = q.shape
    kv_heads = k.shape[1]
    require(k.shape == v.shape, f"k is {k.shape} and v is {v.shape}; give them one shape")
    require(
        k.shape == (tokens, kv_heads, head_dim),
        f"q is {q.shape} and k is {k.shape}; give the same tokens and head_dim",
    )
    require(
        heads % kv_heads == 0,
        f"q has {heads} heads and k has {kv_heads}; give a multiple of the KV heads",
    )
    require(
        kv_cache.ndim == 5 and kv_cache.shape[1:4] == (kv_heads, 2, head_dim),
        f"kv_cache is {kv_cache.shape}; give (pages, {kv_heads}, 2, {head_dim}, page_size)",
    )
    requests = page_table.shape[0]
    require(
        cu_q_lens.shape == (requests + 1,) and kv_lens.shape == (requests,),
        f"page_table has {requests} requests, cu_q_lens is {cu_q_lens.shape} and kv_lens is "
        f"{kv_lens.shape}; give requests + 1 and requests",
    )
    for name, array in (
        ("page_table", page_table),
        ("cu_q_lens", cu_q_lens),
        ("kv_lens", kv_lens),
    ):
        require(array.dtype == jnp.int32, f"{name} is {array.dtype}; give int32")
    require(
        sliding_window is None or sliding_window > 0,
        f"sliding_window is {sliding_window}; give a positive number of tokens or None",
    )
    require(
        soft_cap is None or soft_cap > 0, f"soft_cap is {soft_cap}; give a positive number or None"
    )
    problems.raise_if_any()
