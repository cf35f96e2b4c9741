"""Greedy tokens equal Hugging Face transformers' in float32, eager and compiled."""

import pytest

from demo.reference import greedy
from tests.e2e.engine import engine, generate, greedy_params, tokens
from tests.models.prompt import boundary_prompts, random_prompt

pytestmark = pytest.mark.engine

NEW_TOKENS = 24


@pytest.fixture(
    scope="module",
    params=[(m, mode) for m in ("llama", "qwen3", "gemma3") for mode in ("compiled", "eager")],
    ids="-".join,
)
def model(request, tiny_model):
    name, mode = request.param
    directory = tiny_model(name)
    with engine(directory, enforce_eager=mode == "eager", block_size=16) as llm:
        yield llm, directory


def test_prompts_across_page_and_bucket_boundaries_equal_transformers(model):
    """More prompts than max_num_seqs, so steps mix prefill, chunked prefill and decode."""
    llm, directory = model
    prompts = boundary_prompts()
    expected = [c.token_ids for c in greedy(directory, prompts, NEW_TOKENS)]
    assert tokens(generate(llm, prompts, greedy_params(NEW_TOKENS))) == expected


def test_requests_of_different_lengths_end_and_start_in_one_batch(model):
    llm, directory = model
    prompts = [random_prompt(length, seed=5) for length in (3, 70, 9, 33, 120, 5)]
    lengths = [2, 17, 1, 9, 5, 21]
    expected = [
        c.token_ids[:n]
        for c, n in zip(greedy(directory, prompts, max(lengths)), lengths, strict=True)
    ]
    assert tokens(generate(llm, prompts, *map(greedy_params, lengths))) == expected
