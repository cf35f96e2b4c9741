"""Prompt log probabilities: over chunks, over row buckets, and beside other requests."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from vllm.v1.sample.sampler import Sampler
from vllm_torchtpu.runner.bucket import Buckets
from vllm_torchtpu.runner.prompt_logprobs import collect
from vllm_torchtpu.runner.timing import StepTimer

VOCABULARY = 32
PROMPT = [int(token) for token in np.random.default_rng(0).integers(0, VOCABULARY, 21)]
# The hidden states stand for the logits themselves: row i follows prompt token i.
STATES = torch.from_numpy(np.random.default_rng(1).normal(size=(21, VOCABULARY))).float()


@pytest.fixture(autouse=True)
def _device(virtual_tpu):
    """vLLM's sampler compiles its ranks' function, for which the device must be known."""


def _runner() -> SimpleNamespace:
    """Row buckets of at most 8; the scored request is the second of the batch."""
    shapes: list[int] = []

    def logits(rows: torch.Tensor) -> torch.Tensor:
        shapes.append(len(rows))
        return rows

    request = SimpleNamespace(
        prompt_token_ids=PROMPT, num_computed_tokens=0, in_progress_prompt_logprobs_cpu=None
    )
    return SimpleNamespace(
        num_prompt_logprobs={"scored": 2},
        requests={"scored": request},
        query_start_loc=SimpleNamespace(np=np.array([0, 3, 0])),
        input_batch=SimpleNamespace(req_id_to_index={"other": 0, "scored": 1}),
        row_buckets=Buckets((4, 8)),
        device=torch.device("cpu"),
        model=SimpleNamespace(compute_logits=logits),
        model_config=SimpleNamespace(logprobs_mode="raw_logprobs"),
        sampler=Sampler(),
        timer=StepTimer(),
        shapes=shapes,
    )


def _step(runner: SimpleNamespace, count: int) -> dict:
    """Runs one step of 3 tokens of another request and `count` of the scored one, padded."""
    start = runner.requests["scored"].num_computed_tokens
    padding = torch.full((32 - 3 - count, VOCABULARY), float("nan"))
    other = torch.full((3, VOCABULARY), float("nan"))
    states = torch.cat([other, STATES[start : start + count], padding])
    complete = collect(runner, states, {"other": 3, "scored": count})
    runner.requests["scored"].num_computed_tokens += count
    return complete


def _check(scores) -> None:
    shifted = STATES.double() - STATES.double().exp().sum(-1, keepdim=True).log()
    assert scores.logprobs.shape == (20, 3)
    for position in range(20):
        expected = shifted[position]
        target = PROMPT[position + 1]
        best = expected.argsort(descending=True)[:2].tolist()
        assert scores.logprob_token_ids[position].tolist() == [target, *best]
        found = scores.logprobs[position].double()
        assert torch.allclose(found, expected[[target, *best]], atol=1e-5)
        rank = int((expected >= expected[target]).sum())
        assert int(scores.selected_token_ranks[position]) == rank


def test_a_prompt_of_one_step_is_scored_in_row_buckets():
    runner = _runner()
    _check(_step(runner, 21)["scored"])
    assert runner.shapes == [8, 8, 4], "no other shape was compiled in warm-up"
    assert runner.num_prompt_logprobs == {}
    assert runner.requests["scored"].in_progress_prompt_logprobs_cpu is None


def test_a_chunked_prompt_gathers_over_its_steps():
    runner = _runner()
    assert _step(runner, 9) == {}
    assert _step(runner, 7) == {}
    _check(_step(runner, 5)["scored"])


def test_a_last_chunk_of_one_token_has_nothing_more_to_score():
    runner = _runner()
    assert _step(runner, 20) == {}
    runner.shapes.clear()
    _check(_step(runner, 1)["scored"])
    assert runner.shapes == []


def test_a_request_that_is_not_in_the_step_waits():
    runner = _runner()
    assert collect(runner, STATES, {"other": 3}) == {}
    assert runner.num_prompt_logprobs == {"scored": 2}
