"""The other dtypes through every path: nothing compiles after warm-up, and the paths agree.

In 16 bits a tiny random model has near ties, and which way they fall depends on how a step's
requests were scheduled. So tokens are not compared one by one: a choice of the device has to be
one that the host's log probabilities allow, and draws with one seed have to agree nearly always.
"""

import pytest

from tests.e2e.engine import engine, generate, greedy_params, tokens
from tests.models import vocabulary
from tests.models.prompt import random_prompt

pytestmark = pytest.mark.engine

PROMPTS = [random_prompt(3 + 2 * index, seed=70) for index in range(24)]
LONG = random_prompt(90, seed=71)
# Logits are of size 10: three bits less than bfloat16's eight.
ROUNDING = {"bfloat16": 0.5, "float16": 0.06}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_device_and_host_paths_agree_in(dtype, tiny_model):
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    seeded = {"temperature": 1.0, "seed": 3, "max_tokens": 1, "ignore_eos": True}
    grammar = StructuredOutputsParams(choice=["yes", "no"])
    with engine(tiny_model("llama"), dtype=dtype) as llm:
        greedy = generate(llm, PROMPTS, greedy_params(1))
        scored = generate(llm, PROMPTS, greedy_params(1, logprobs=-1, prompt_logprobs=1))
        drawn = generate(llm, PROMPTS, SamplingParams(**seeded))
        drawn_on_host = generate(llm, PROMPTS, SamplingParams(**seeded, logprobs=1))
        lengthened = generate(llm, PROMPTS, greedy_params(6))
        chosen = generate(
            llm,
            PROMPTS[:1],
            SamplingParams(temperature=0, max_tokens=8, structured_outputs=grammar),
        )
        in_chunks = generate(llm, [LONG], SamplingParams(**seeded, prompt_logprobs=0))
    for [token], host in zip(tokens(greedy), scored, strict=True):
        [scores] = host.outputs[0].logprobs
        assert len(scores) == vocabulary.SIZE
        best = max(entry.logprob for entry in scores.values())
        assert scores[token].logprob > best - ROUNDING[dtype]
    assert _agreement(drawn, drawn_on_host) >= 0.75 > 0.5 > _agreement(drawn, greedy)
    assert [len(ids) for ids in tokens(lengthened)] == [6] * len(PROMPTS)
    assert chosen[0].outputs[0].text in ("yes", "no")
    assert len(in_chunks[0].prompt_logprobs) == len(LONG)
    for prompt, output in zip(PROMPTS, scored, strict=True):
        assert len(output.prompt_logprobs) == len(prompt)


def _agreement(first, second) -> float:
    """Returns the share of requests whose tokens are the same."""
    pairs = zip(tokens(first), tokens(second), strict=True)
    return sum(one == other for one, other in pairs) / len(first)
