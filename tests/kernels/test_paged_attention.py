"""The contract of paged_attention: named cases and random ragged batches against NumPy float64."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torchtpu_kernels.core.check import ShapeError
from torchtpu_kernels.ops.paged_attention import paged_attention
from torchtpu_kernels.ops.paged_attention.cases import CASES, Case

from tests.kernels.batch import build

_TOLERANCE = {"float32": 2e-5, "bfloat16": 2e-2}


@functools.cache
def _compiled(**options):
    return jax.jit(functools.partial(paged_attention, **options))


def _assert_contract(case: Case, seed: int = 0) -> None:
    batch = build(case, seed)
    out, cache = _compiled(**batch.options)(*batch.arguments)
    tolerance = _TOLERANCE[case.dtype]
    assert out.dtype == jnp.dtype(case.dtype)
    np.testing.assert_allclose(
        np.asarray(out, np.float64), batch.expected_out, rtol=tolerance, atol=tolerance
    )
    cache = np.asarray(cache, np.float64)
    owned = np.zeros((cache.shape[0], cache.shape[-1]), bool)
    for page, offset, key, value in batch.expected_slots:
        np.testing.assert_array_equal(cache[page, :, 0, :, offset], key)
        np.testing.assert_array_equal(cache[page, :, 1, :, offset], value)
        owned[page, offset] = True
    # A slot that no request owns keeps its poison: nothing was written beside the new tokens.
    assert np.isnan(cache.transpose(0, 4, 1, 2, 3)[~owned]).all()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_named_case_equals_numpy(case):
    _assert_contract(case)


_LENGTH = st.sampled_from([0, 1, 2, 15, 16, 17, 31, 33, 63, 65, 127, 128, 129, 300])


@settings(max_examples=15, deadline=None)
@given(
    lengths=st.lists(st.tuples(_LENGTH, _LENGTH), min_size=1, max_size=4),
    window=st.sampled_from([None, 1, 17, 128, 200]),
    page_size=st.sampled_from([16, 128]),
    pad_tokens=st.sampled_from([1, 40]),
    seed=st.integers(0, 9),
)
def test_random_ragged_batch_equals_numpy(lengths, window, page_size, pad_tokens, seed):
    q_lens = tuple(min(new, 70) for new, _ in lengths)
    kv_lens = tuple(q + cached * (q > 0) for q, (_, cached) in zip(q_lens, lengths, strict=True))
    case = Case(
        "random", q_lens, kv_lens, sliding_window=window, page_size=page_size, pad_tokens=pad_tokens
    )
    _assert_contract(case, seed)


def test_a_request_reads_what_another_writes_in_the_same_step():
    """Two requests share their first page; the second one computes only its last token."""
    whole = build(Case("prompt", (130,), (130,)))
    q, k, v, cache, table, _, _ = whole.arguments
    order = jnp.concatenate([jnp.arange(130), jnp.array([129])])
    tables = jnp.concatenate([table, table.at[:, 1].set(2 + table.max())])
    cache = jnp.concatenate([cache, jnp.full((3, *cache.shape[1:]), jnp.nan)])
    # The follower's 129th token lies on its own page, as after a prefix-cache hit of one page.
    follower = jnp.array([128, 129])
    order = jnp.concatenate([jnp.arange(130), follower])
    out, _ = _compiled(**whole.options)(
        q[order],
        k[order],
        v[order],
        cache,
        tables,
        jnp.array([0, 130, 132], jnp.int32),
        jnp.array([130, 130], jnp.int32),
    )
    np.testing.assert_allclose(
        np.asarray(out[130:]), whole.expected_out[128:], rtol=2e-5, atol=2e-5
    )


def test_every_problem_of_a_call_is_named_at_once():
    batch = build(CASES[0])
    q, k, v, cache, table, cu_q_lens, kv_lens = batch.arguments
    with pytest.raises(ShapeError) as caught:
        paged_attention(
            q[:, :3],
            k,
            v,
            cache,
            table,
            cu_q_lens.astype(jnp.int8),
            kv_lens,
            scale=1.0,
            soft_cap=-1,
        )
    for part in ("3 heads", "cu_q_lens is int8", "soft_cap is -1"):
        assert part in str(caught.value)
