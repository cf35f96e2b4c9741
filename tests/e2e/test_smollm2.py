"""A real model: greedy tokens of SmolLM2-135M-Instruct equal transformers' in float32."""

import pytest

from demo.reference import chat_prompts, greedy
from tests.e2e.engine import engine, generate, greedy_params, tokens

pytestmark = [pytest.mark.engine, pytest.mark.slow]

NEW_TOKENS = 32
QUESTIONS = (
    "What is the capital of France?",
    "Write one sentence about a scheduler that mixes prefill and decode.",
    "List three prime numbers.",
)
TEXTS = ("def fibonacci(n):\n    ", "The quick brown fox")
# Below this difference of logits, two correct float32 programs may choose differently.
ROUNDING = 1e-3


def test_the_first_tokens_of_five_prompts_equal_transformers(smollm2_directory):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(smollm2_directory)
    prompts = chat_prompts(smollm2_directory, QUESTIONS)
    prompts += [tokenizer(text)["input_ids"] for text in TEXTS]
    expected = greedy(smollm2_directory, prompts, NEW_TOKENS)
    smallest = min(min(continuation.margins) for continuation in expected)
    assert smallest > ROUNDING, "a choice is a tie; take another prompt"
    memory = {"gpu_memory_utilization": 0.95, "kv_cache_memory_bytes": 64 << 20}
    with engine(smollm2_directory, max_model_len=512, **memory) as llm:
        found = tokens(generate(llm, prompts, greedy_params(NEW_TOKENS)))
    assert found == [continuation.token_ids for continuation in expected]
