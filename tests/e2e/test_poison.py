"""Padding never leaks: NaN in free pages, unwritten slots and padded rows changes nothing."""

import pytest

from tests.e2e.engine import engine, generate, greedy_params, tokens
from tests.models.prompt import random_prompt
from tests.models.vocabulary import PAD

pytestmark = pytest.mark.engine

NEW_TOKENS = 12


def _poison(worker) -> int:
    """Fills all pages, and the embedding of the id that padded rows carry, with NaN."""
    import torch

    runner = worker.model_runner
    for cache in runner.kv_caches:
        cache.copy_(torch.full(cache.shape, float("nan"), dtype=cache.dtype).to(cache.device))
    embedding = runner.get_model().model.embed_tokens.weight
    poisoned = embedding.detach().cpu()
    poisoned[0] = float("nan")
    embedding.data.copy_(poisoned.to(embedding.device))
    return sum(int(torch.isnan(cache.cpu()).all()) for cache in runner.kv_caches)


@pytest.mark.parametrize("name", ["llama", "gemma3"])
def test_nan_in_everything_unused_gives_the_same_tokens(name, tiny_model):
    assert PAD == 0, "padded rows carry token id 0"
    prompts = [random_prompt(length, seed=9) for length in (1, 5, 33, 70, 130)]
    with engine(tiny_model(name), block_size=16) as llm:
        clean = generate(llm, prompts, greedy_params(NEW_TOKENS, logprobs=2))
        assert llm.reset_prefix_cache()
        assert llm.collective_rpc(_poison) == [len(llm.collective_rpc(_cache_names)[0])]
        poisoned = generate(llm, prompts, greedy_params(NEW_TOKENS, logprobs=2))
    assert tokens(clean) == tokens(poisoned)
    for before, after in zip(clean, poisoned, strict=True):
        for old, new in zip(before.outputs[0].logprobs, after.outputs[0].logprobs, strict=True):
            assert {t: l.logprob for t, l in old.items()} == pytest.approx(
                {t: l.logprob for t, l in new.items()}, abs=1e-5
            )


def _cache_names(worker) -> list[int]:
    return list(range(len(worker.model_runner.kv_caches)))
