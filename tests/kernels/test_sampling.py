"""The contract of sample_tokens: distributions and filters against independent NumPy."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torchtpu_kernels.core.check import ShapeError
from torchtpu_kernels.ops.sampling import sample_tokens

_DRAWS = 100_000


@functools.cache
def _compiled():
    return jax.jit(sample_tokens)


def _parameters(rows, **given_values):
    values = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0} | given_values
    return [
        np.full(rows, values["temperature"], np.float32),
        np.full(rows, values["top_k"], np.int32),
        np.full(rows, values["top_p"], np.float32),
        np.full(rows, values["min_p"], np.float32),
    ]


def _draw(logits, *, first_seed=0, counter=0, **options):
    """Draws `_DRAWS` times from one row of logits, each draw with a seed of its own."""
    seeds = np.stack([np.arange(_DRAWS) + first_seed, np.full(_DRAWS, 7)], 1).astype(np.uint32)
    rows = np.broadcast_to(np.asarray(logits, np.float32), (_DRAWS, len(logits)))
    counters = np.full(_DRAWS, counter, np.int32)
    tokens = _compiled()(rows, *_parameters(_DRAWS, **options), seeds, counters)
    return np.bincount(np.asarray(tokens), minlength=len(logits)) / _DRAWS


def _expected(logits, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0):
    """The exact distribution, by sorting, in float64; no two logits may be equal."""
    scaled = np.asarray(logits, np.float64) / temperature
    p = np.exp(scaled - scaled.max())
    p /= p.sum()
    kept = p >= min_p * p.max()
    order = np.argsort(-p)
    if top_k:
        kept[order[top_k:]] = False
    p = np.where(kept, p, 0) / p[kept].sum()
    before = np.concatenate([[0], np.cumsum(p[order])[:-1]])
    p[order[before >= top_p]] = 0
    return p / p.sum()


def _pearson_excess(observed, expected):
    """Pearson's statistic less the value that a true sample exceeds once in a million runs.

    The bound is Wilson and Hilferty's (1931) approximation of the chi-square quantile.
    """
    cells = expected * _DRAWS >= 5
    statistic = (_DRAWS * (observed - expected)[cells] ** 2 / expected[cells]).sum()
    n = cells.sum()
    return statistic - n * (1 - 2 / (9 * n) + 4.753 * np.sqrt(2 / (9 * n))) ** 3


_LOGITS = np.random.default_rng(3).normal(size=50) * 2


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": 0.5},
        {"temperature": 2.0},
        {"top_k": 1},
        {"top_k": 5},
        {"top_k": 50},
        {"top_k": 1000},
        {"top_p": 0.5},
        {"top_p": 0.9},
        {"top_p": 1e-6},
        {"min_p": 0.1},
        {"min_p": 1.0},
        {"temperature": 1.5, "top_k": 20, "top_p": 0.8, "min_p": 0.02},
    ],
    ids=str,
)
def test_frequencies_follow_the_exact_distribution(options):
    expected = _expected(_LOGITS, **options)
    observed = _draw(_LOGITS, **options)
    assert observed[expected == 0].sum() == 0
    assert _pearson_excess(observed, expected) < 0


def test_the_statistic_catches_a_slightly_wrong_distribution():
    """Guards the test above: a slightly wrong distribution must fail it."""
    expected = _expected(_LOGITS)
    wrong = expected.copy()
    wrong[np.argmax(expected)] *= 0.9
    observed = np.random.default_rng(0).multinomial(_DRAWS, wrong / wrong.sum()) / _DRAWS
    assert _pearson_excess(observed, expected) > 0


def test_counters_give_independent_draws():
    first, second = (_draw(_LOGITS, counter=c) for c in (0, 1))
    assert not np.array_equal(first, second)


def test_a_row_does_not_depend_on_its_neighbours_or_its_place():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(8, 1000)).astype(np.float32)
    seeds = rng.integers(0, 2**32, (8, 2), dtype=np.uint32)
    counters = np.arange(8, dtype=np.int32)
    together = np.asarray(_compiled()(logits, *_parameters(8, top_k=50), seeds, counters))
    order = rng.permutation(8)
    mixed = np.asarray(
        _compiled()(logits[order], *_parameters(8, top_k=50), seeds[order], counters[order])
    )
    np.testing.assert_array_equal(together[order], mixed)
    for row in range(8):
        one = slice(row, row + 1)
        alone = _compiled()(logits[one], *_parameters(1, top_k=50), seeds[one], counters[one])
        assert int(alone[0]) == together[row]


def test_greedy_rows_stay_greedy_beside_random_ones():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(6, 300)).astype(np.float32)
    temperature, *rest = _parameters(6)
    temperature[::2] = 0
    seeds = rng.integers(0, 2**32, (6, 2), dtype=np.uint32)
    tokens = _compiled()(logits, temperature, *rest, seeds, np.zeros(6, np.int32))
    np.testing.assert_array_equal(np.asarray(tokens)[::2], logits.argmax(-1)[::2])


@settings(max_examples=25, deadline=None)
@given(
    values=st.lists(
        st.sampled_from([-np.inf, -3.0, -0.0, 0.0, 1e-20, 2.5, 30.0]), min_size=40, max_size=40
    ).filter(lambda row: max(row) > -np.inf),
    top_k=st.integers(0, 45),
    top_p=st.sampled_from([0.3, 0.99, 1.0]),
    seed=st.integers(0, 2**31),
)
def test_ties_and_excluded_tokens_are_never_split(values, top_k, top_p, seed):
    """A drawn token's value is one that the sorted definition keeps for some order of ties."""
    logits = np.asarray([values], np.float32)
    parameters = _parameters(1, top_k=top_k, top_p=top_p)
    token = int(
        _compiled()(logits, *parameters, np.asarray([[seed, 1]], np.uint32), np.zeros(1, np.int32))[
            0
        ]
    )
    ranked = np.sort(logits[0])[::-1]
    assert logits[0, token] > -np.inf
    if top_k:
        assert logits[0, token] >= ranked[min(top_k, 40) - 1]


def test_zeros_of_either_sign_are_equal():
    """top_k 1 keeps both, so both are drawn."""
    observed = _draw([-0.0, 0.0, -5.0], top_k=1)
    np.testing.assert_allclose(observed, [0.5, 0.5, 0.0], atol=0.02)


def test_bad_arguments_are_named_at_once():
    parameters = _parameters(2)
    with pytest.raises(ShapeError) as caught:
        sample_tokens(
            jnp.zeros((2, 9)), *parameters[:1], parameters[1].astype(np.float32), *parameters[2:],
            np.zeros((2, 3), np.uint32), np.zeros(2, np.int32),
        )  # fmt: skip
    assert "top_k is float32[2]" in str(caught.value)
    assert "seeds is uint32[2, 3]" in str(caught.value)
