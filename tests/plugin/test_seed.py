"""Where a request's sampling noise comes from."""

import struct

import pytest
from vllm.sampling_params import SamplingParams
from vllm_torchtpu.runner.seed import RequestSeeds


def _bits(words: tuple[int, int]) -> int:
    """The unsigned 64 bits that two int32 words, the low one first, are made of."""
    return struct.unpack("<Q", struct.pack("<ii", *words))[0]


@pytest.mark.parametrize(
    ("seed", "words"),
    [
        (0, (0, 0)),
        (7, (7, 0)),
        (0xFFFFFFFF, (-1, 0)),
        (0x80000000, (-0x80000000, 0)),
        (0x1_00000002, (2, 1)),
        (2**63 - 1, (-1, 0x7FFFFFFF)),
        (-2, (-2, -1)),
    ],
)
def test_a_user_s_seed_is_all_of_its_64_bits(seed, words):
    assert RequestSeeds(0).of("a", SamplingParams(seed=seed)) == words


def test_the_same_seed_gives_the_same_noise_in_every_request_and_engine():
    params = SamplingParams(seed=11)
    assert RequestSeeds(0).of("a", params) == RequestSeeds(1).of("b", params)


def test_requests_without_a_seed_differ_and_keep_theirs():
    seeds = RequestSeeds(0)
    drawn = {name: seeds.of(name, SamplingParams()) for name in "abcdefgh"}
    assert len(set(drawn.values())) == len(drawn)
    assert {name: seeds.of(name, SamplingParams()) for name in reversed("abcdefgh")} == drawn
    assert any(_bits(words) >> 63 for words in drawn.values()), "the top bit is drawn too"


def test_the_engine_s_seed_repeats_a_run():
    def run(engine_seed: int) -> list[tuple[int, int]]:
        seeds = RequestSeeds(engine_seed)
        return [seeds.of(name, SamplingParams()) for name in "abc"]

    assert run(3) == run(3)
    assert run(3) != run(4)


def test_a_seeded_neighbour_does_not_change_what_others_draw():
    alone, beside = RequestSeeds(3), RequestSeeds(3)
    beside.of("seeded", SamplingParams(seed=1))
    assert alone.of("a", SamplingParams()) == beside.of("a", SamplingParams())


def test_a_forgotten_request_s_name_starts_anew():
    seeds = RequestSeeds(0)
    first = seeds.of("a", SamplingParams())
    seeds.forget("a")
    assert seeds.of("a", SamplingParams()) != first
    seeds.forget("never seen")
