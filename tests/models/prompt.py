"""Prompts for the tiny models: ids drawn by a seed, lengths around page and bucket boundaries."""

import random

from tests.models import vocabulary

# Pages hold 16 tokens and token buckets are powers of two: one below, on and above of both.
BOUNDARY_LENGTHS = (1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 130)


def random_prompt(length: int, seed: int = 0) -> list[int]:
    """Returns ``length`` ordinary token ids (no special ones)."""
    generator = random.Random(f"{length}/{seed}")
    first = len(vocabulary.SPECIAL_TOKENS)
    return [generator.randrange(first, vocabulary.SIZE) for _ in range(length)]


def boundary_prompts() -> list[list[int]]:
    """Returns one prompt of each length of BOUNDARY_LENGTHS, in a mixed order."""
    lengths = list(BOUNDARY_LENGTHS)
    random.Random(0).shuffle(lengths)
    return [random_prompt(length) for length in lengths]
