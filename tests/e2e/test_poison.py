"""Padding never leaks: NaN in free pages, unwritten slots and padded rows changes nothing."""

import pytest

from tests.e2e.engine import engine, generate, greedy_params, tokens
from tests.models.prompt import random_prompt
from tests.models.vocabulary import PAD

pytestmark = pytest.mark.engine

NEW_TOKENS = 12


def _poison(worker, with_embedding: bool) -> int:
    """Fills all pages, and the embedding of the id that padded rows carry, with NaN."""
    import torch

    runner = worker.model_runner
    run_model = runner._model_forward

    def with_poisoned_padding(input_ids, positions, *rest, **options):
        # vLLM leaves earlier steps' ids behind the batch's tokens.
        scheduled = int(runner.query_start_loc.np[runner.input_batch.num_reqs])
        input_ids[scheduled:] = PAD
        return run_model(input_ids, positions, *rest, **options)

    runner._model_forward = with_poisoned_padding
    if with_embedding:
        embedding = runner.get_model().model.embed_tokens.weight
        poisoned = embedding.detach().cpu()
        poisoned[PAD] = float("nan")
        embedding.data.copy_(poisoned.to(embedding.device))
    for cache in runner.kv_caches:
        cache.copy_(torch.full(cache.shape, float("nan"), dtype=cache.dtype).to(cache.device))
    return sum(int(torch.isnan(cache.cpu()).all()) for cache in runner.kv_caches)


def _count_caches(worker) -> int:
    return len(worker.model_runner.kv_caches)


# Gemma's embedding is its output matrix too: a poisoned row would be a real token's logit.
@pytest.mark.parametrize(("name", "with_embedding"), [("llama", True), ("gemma3", False)])
def test_nan_in_everything_unused_gives_the_same_tokens(name, with_embedding, tiny_model):
    assert PAD == 0, "padded rows carry token id 0"
    # No request may draw the poisoned token itself.
    params = greedy_params(NEW_TOKENS, logprobs=2, logit_bias={PAD: -100})
    prompts = [random_prompt(length, seed=9) for length in (1, 5, 33, 70, 130)]
    with engine(tiny_model(name), block_size=16) as llm:
        clean = generate(llm, prompts, params)
        assert llm.reset_prefix_cache()
        num_poisoned = llm.collective_rpc(_poison, args=(with_embedding,))
        assert num_poisoned == llm.collective_rpc(_count_caches) != [0]
        poisoned = generate(llm, prompts, params)
    assert tokens(clean) == tokens(poisoned)
    for before, after in zip(clean, poisoned, strict=True):
        for old, new in zip(before.outputs[0].logprobs, after.outputs[0].logprobs, strict=True):
            assert _values(old) == pytest.approx(_values(new), abs=1e-4)


def _values(logprobs) -> dict[int, float]:
    return {token: found.logprob for token, found in logprobs.items()}
