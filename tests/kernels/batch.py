"""Builds a ragged batch, its paged cache and the expected result from a case."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from torchtpu_kernels.ops.paged_attention import kv_cache_shape
from torchtpu_kernels.ops.paged_attention.cases import Case

from tests.kernels.oracle_attention import attend


@dataclass
class Batch:
    """Arguments of the op, and what it must return."""

    arguments: tuple
    options: dict
    expected_out: np.ndarray
    expected_slots: list[tuple[int, int, np.ndarray, np.ndarray]]
    num_real_tokens: int


def build(case: Case, seed: int = 0) -> Batch:
    """Fills every slot that no request owns, and every padding token, with NaN."""
    rng = np.random.default_rng(seed)
    dtype = jnp.dtype(case.dtype)

    def draw(*shape):
        return np.asarray(jnp.asarray(rng.standard_normal(shape), dtype), np.float64)

    scale = case.head_dim**-0.5 * 2
    pages_each = [-(-n // case.page_size) for n in case.kv_lens]
    max_pages = max(1, *pages_each) + 1
    num_pages = sum(pages_each) + 3
    order = rng.permutation(np.arange(1, num_pages))
    cache = np.full(kv_cache_shape(num_pages, case.kv_heads, case.head_dim, case.page_size), np.nan)
    requests = len(case.q_lens) + case.pad_requests
    table = np.zeros((requests, max_pages), np.int32)
    tokens = sum(case.q_lens)
    q = np.full((tokens + case.pad_tokens, case.heads, case.head_dim), np.nan)
    k = np.full((tokens + case.pad_tokens, case.kv_heads, case.head_dim), np.nan)
    v = k.copy()
    out = np.zeros(q.shape)
    slots, start, taken = [], 0, 0
    for r, (q_len, kv_len) in enumerate(zip(case.q_lens, case.kv_lens, strict=True)):
        pages = order[taken : taken + pages_each[r]]
        taken += pages_each[r]
        table[r, : len(pages)] = pages
        keys, values = draw(2, kv_len, case.kv_heads, case.head_dim)
        new = slice(start, start + q_len)
        q[new] = draw(q_len, case.heads, case.head_dim)
        k[new], v[new] = keys[kv_len - q_len :], values[kv_len - q_len :]
        for t in range(kv_len):
            page, offset = pages[t // case.page_size], t % case.page_size
            slots.append((page, offset, keys[t], values[t]))
            if t < kv_len - q_len:
                cache[page, :, 0, :, offset] = keys[t]
                cache[page, :, 1, :, offset] = values[t]
        out[new] = attend(
            q[new],
            keys,
            values,
            first_position=kv_len - q_len,
            scale=scale,
            sliding_window=case.sliding_window,
            soft_cap=case.soft_cap,
        )
        start += q_len
    cu_q_lens = np.full(requests + 1, tokens, np.int32)
    cu_q_lens[: len(case.q_lens) + 1] = np.cumsum((0, *case.q_lens))
    kv_lens = np.zeros(requests, np.int32)
    kv_lens[: len(case.kv_lens)] = case.kv_lens
    arguments = (
        *(jnp.asarray(x, dtype) for x in (q, k, v, cache)),
        *(jnp.asarray(x) for x in (table, cu_q_lens, kv_lens)),
    )
    options = {
        "scale": scale,
        "sliding_window": case.sliding_window,
        "soft_cap": case.soft_cap,
    }
    return Batch(arguments, options, out, slots, tokens)
