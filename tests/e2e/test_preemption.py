"""A pool too small for its batch: preempted requests start again and end the same."""

import pytest

from demo.reference import greedy
from tests.e2e.engine import engine, generate, greedy_params, tokens
from tests.models.prompt import random_prompt

pytestmark = pytest.mark.engine

PAGE = 16
# Three requests grow to seven pages each; one page is vLLM's null page.
NUM_PAGES = 16
NEW_TOKENS = 40


def test_preempted_requests_keep_their_tokens_and_their_noise(tiny_model):
    from vllm import SamplingParams

    directory = tiny_model("llama")
    prompts = [random_prompt(length, seed=60) for length in (62, 60, 58)]
    expected = [c.token_ids for c in greedy(directory, prompts, NEW_TOKENS)]
    seeded = SamplingParams(temperature=1.0, seed=5, max_tokens=NEW_TOKENS, ignore_eos=True)
    with engine(
        directory,
        block_size=PAGE,
        max_model_len=128,
        num_gpu_blocks_override=NUM_PAGES,
        disable_log_stats=False,
    ) as llm:
        assert tokens(generate(llm, prompts, greedy_params(NEW_TOKENS))) == expected
        crowded = tokens(generate(llm, prompts, seeded))
        preemptions = next(m.value for m in llm.get_metrics() if m.name == "vllm:num_preemptions")
        alone = [tokens(generate(llm, [prompt], seeded))[0] for prompt in prompts]
    assert preemptions >= 2
    assert crowded == alone
