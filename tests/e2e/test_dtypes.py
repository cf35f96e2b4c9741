"""The other dtypes through every path: nothing compiles after warm-up, and the paths agree.

Prompts that share a step are scheduled alike each time; these dtypes would tell the difference.
"""

import pytest

from tests.e2e.engine import engine, generate, greedy_params, tokens
from tests.models.prompt import random_prompt

pytestmark = pytest.mark.engine

PROMPTS = [random_prompt(length, seed=70) for length in (3, 20, 30)]
LONG = random_prompt(90, seed=71)
NEW_TOKENS = 6


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_device_and_host_paths_agree_in(dtype, tiny_model):
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    seeded = {"temperature": 1.0, "seed": 3, "max_tokens": NEW_TOKENS, "ignore_eos": True}
    grammar = StructuredOutputsParams(choice=["yes", "no"])
    with engine(tiny_model("llama"), dtype=dtype) as llm:
        greedy = generate(llm, PROMPTS, greedy_params(NEW_TOKENS))
        scored = generate(llm, PROMPTS, greedy_params(NEW_TOKENS, logprobs=1, prompt_logprobs=1))
        drawn = generate(llm, PROMPTS, SamplingParams(**seeded))
        drawn_on_host = generate(llm, PROMPTS, SamplingParams(**seeded, logprobs=1))
        chosen = generate(
            llm,
            PROMPTS[:1],
            SamplingParams(temperature=0, max_tokens=8, structured_outputs=grammar),
        )
        in_chunks = generate(llm, [LONG], SamplingParams(**seeded, prompt_logprobs=0))
    assert tokens(greedy) == tokens(scored)
    assert len(in_chunks[0].prompt_logprobs) == len(LONG)
    assert tokens(drawn) == tokens(drawn_on_host) != tokens(greedy)
    assert chosen[0].outputs[0].text in ("yes", "no")
    for prompt, output in zip(PROMPTS, scored, strict=True):
        assert len(output.prompt_logprobs) == len(prompt)
