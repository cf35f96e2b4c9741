"""Prefix caching and chunked prefill: on by default, and invisible in the tokens."""

import pytest

from demo.reference import greedy
from tests.e2e.engine import MAX_NUM_BATCHED_TOKENS, engine, generate, greedy_params, tokens
from tests.models.prompt import random_prompt

pytestmark = pytest.mark.engine

NEW_TOKENS = 8
PAGE = 16


@pytest.fixture(scope="module", params=["llama", "gemma3"])
def model(request, tiny_model):
    directory = tiny_model(request.param)
    with engine(directory, block_size=PAGE) as llm:
        yield llm, directory


def _expected(directory, prompts):
    return [c.token_ids for c in greedy(directory, prompts, NEW_TOKENS)]


def test_both_are_on_by_default(model):
    llm, _ = model
    config = llm.llm_engine.vllm_config
    assert config.cache_config.enable_prefix_caching
    assert config.scheduler_config.enable_chunked_prefill


def test_a_repeated_prompt_is_cached_and_gives_the_same_tokens(model):
    llm, directory = model
    prompt = random_prompt(3 * PAGE + 5, seed=20)
    expected = _expected(directory, [prompt])
    first = generate(llm, [prompt], greedy_params(NEW_TOKENS))
    second = generate(llm, [prompt], greedy_params(NEW_TOKENS))
    assert first[0].num_cached_tokens == 0
    assert second[0].num_cached_tokens == 3 * PAGE
    assert tokens(first) == tokens(second) == expected


def test_two_requests_that_share_a_prefix_inside_one_step(model):
    """Both are new, so the second one reads pages that the first writes in the same step."""
    llm, directory = model
    prefix = random_prompt(PAGE, seed=21)
    prompts = [prefix + random_prompt(3, seed=22), prefix + random_prompt(4, seed=23)]
    assert sum(map(len, prompts)) <= MAX_NUM_BATCHED_TOKENS
    expected = _expected(directory, prompts)
    outputs = generate(llm, prompts, greedy_params(NEW_TOKENS))
    assert tokens(outputs) == expected
    assert outputs[1].num_cached_tokens == PAGE


def test_a_prompt_longer_than_a_step_is_prefilled_in_chunks(model):
    llm, directory = model
    prompts = [random_prompt(3 * MAX_NUM_BATCHED_TOKENS + 7, seed=24), random_prompt(5, seed=25)]
    outputs = generate(llm, prompts, greedy_params(NEW_TOKENS))
    assert tokens(outputs) == _expected(directory, prompts)


def test_a_page_freed_and_used_again_holds_only_the_new_request(model):
    """Fills and drops the prefix cache between two runs of one prompt."""
    llm, directory = model
    prompt = random_prompt(40, seed=26)
    expected = _expected(directory, [prompt])
    assert tokens(generate(llm, [prompt], greedy_params(NEW_TOKENS))) == expected
    assert llm.reset_prefix_cache()
    others = [random_prompt(60, seed=seed) for seed in range(30, 36)]
    generate(llm, others, greedy_params(NEW_TOKENS))
    assert llm.reset_prefix_cache()
    again = generate(llm, [prompt], greedy_params(NEW_TOKENS))
    assert again[0].num_cached_tokens == 0
    assert tokens(again) == expected
