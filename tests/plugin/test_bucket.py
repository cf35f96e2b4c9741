"""Bucket sizes: few, ascending, and never smaller than the batch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vllm_torchtpu.runner.bucket import Buckets


@pytest.mark.parametrize(
    ("largest", "growth", "sizes"),
    [
        (4, 4, (4,)),
        (8, 4, (8,)),
        (9, 4, (8, 9)),
        (64, 4, (8, 32, 64)),
        (128, 4, (8, 32, 128)),
        (64, 2, (8, 16, 32, 64)),
        (100, 2, (8, 16, 32, 64, 100)),
    ],
)
def test_sizes_grow_from_eight_to_the_largest_batch(largest, growth, sizes):
    assert Buckets.up_to(largest, growth=growth).sizes == sizes


@pytest.mark.parametrize(
    ("count", "size"), [(0, 8), (1, 8), (8, 8), (9, 32), (32, 32), (33, 64), (64, 64)]
)
def test_a_batch_gets_the_smallest_size_that_holds_it(count, size):
    assert Buckets((8, 32, 64)).fit(count) == size


def test_a_batch_above_every_size_is_an_error_with_both_numbers():
    with pytest.raises(ValueError, match=r"65 is above the largest size 64"):
        Buckets((8, 32, 64)).fit(65)


@given(st.integers(1, 9000), st.sampled_from([2, 4]), st.data())
def test_padding_is_bounded_by_the_growth(largest, growth, data):
    buckets = Buckets.up_to(largest, growth=growth)
    count = data.draw(st.integers(1, largest))
    size = buckets.fit(count)
    assert count <= size <= largest
    assert size < max(9, growth * count)
    assert list(buckets.sizes) == sorted(set(buckets.sizes))
