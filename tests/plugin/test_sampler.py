"""What is sampled on the host, and that the host draws by the device's op."""

from types import SimpleNamespace

import pytest
import torch
from vllm.v1.sample.logits_processor import LogitsProcessors, MinPLogitsProcessor
from vllm.v1.sample.logits_processor.builtin import (
    LogitBiasLogitsProcessor,
    MinTokensLogitsProcessor,
)
from vllm.v1.sample.metadata import SamplingMetadata
from vllm_torchtpu.runner.sampler import HostSampler, needs_host

# Dynamo, which vLLM's gathering of logprobs uses, wants the device's module.
pytestmark = pytest.mark.usefixtures("virtual_tpu")

LOGITS = torch.tensor([[1.0, 4.0, 2.0, 3.0], [0.0, 0.5, -1.0, 8.0]])
CPU = torch.device("cpu")


def _none() -> torch.Tensor:
    return torch.zeros(2)


def _processors(biases=None, min_tokens=None, custom=()) -> LogitsProcessors:
    """vLLM's own three, which exist in every batch, and custom ones."""
    bias = LogitBiasLogitsProcessor(None, CPU, False)
    bias.biases = biases or {}
    minimum = MinTokensLogitsProcessor(SimpleNamespace(speculative_config=None), CPU, False)
    minimum.min_toks = min_tokens or {}
    config = SimpleNamespace(scheduler_config=SimpleNamespace(max_num_seqs=2))
    return LogitsProcessors([bias, minimum, MinPLogitsProcessor(config, CPU, False), *custom])


def _metadata(**changes) -> SamplingMetadata:
    """A batch of two requests with temperature, top_k and top_p: all for the device."""
    plain = {
        "temperature": torch.tensor([0.5, 1.0]),
        "all_greedy": False,
        "all_random": True,
        "top_p": torch.tensor([0.9, 0.8]),
        "top_k": torch.tensor([2, 4]),
        "generators": {},
        "max_num_logprobs": None,
        "no_penalties": True,
        "prompt_token_ids": None,
        "frequency_penalties": _none(),
        "presence_penalties": _none(),
        "repetition_penalties": torch.ones(2),
        "output_token_ids": [[], []],
        "allowed_token_ids_mask": None,
        "bad_words_token_ids": {},
        "logitsprocs": _processors(),
    }
    return SamplingMetadata(**(plain | changes))


class _Custom:
    """A custom processor that doubles logits."""

    def __init__(self, invariant: bool) -> None:
        self._invariant = invariant

    def is_argmax_invariant(self) -> bool:
        return self._invariant

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        return logits + torch.tensor([1.0, 0.0, 0.0, 0.0])


class _Draw:
    """Stands for the device op: remembers its logits and draws the last token."""

    def __call__(self, logits: torch.Tensor) -> torch.Tensor:
        self.logits = logits.clone()
        return torch.full((len(logits),), logits.shape[1] - 1, dtype=torch.int32)


# -- who needs the host


def test_temperature_top_k_top_p_and_min_p_stay_on_the_device():
    assert not needs_host(_metadata())


def test_a_greedy_batch_stays_on_the_device():
    greedy = {"temperature": None, "all_greedy": True, "top_p": None, "top_k": None}
    assert not needs_host(_metadata(**greedy))


@pytest.mark.parametrize(
    "changes",
    [
        {"max_num_logprobs": 0},
        {"max_num_logprobs": -1},
        {"logprob_token_ids": {0: [3]}},
        {"no_penalties": False},
        {"bad_words_token_ids": {1: [[2]]}},
        {"allowed_token_ids_mask": torch.zeros(2, 4, dtype=torch.bool)},
        {"logitsprocs": _processors(biases={0: {1: 5.0}})},
        {"logitsprocs": _processors(min_tokens={0: (3, [], {2})})},
        {"logitsprocs": _processors(custom=[_Custom(invariant=False)])},
        {"logitsprocs": _processors(custom=[_Custom(invariant=True)])},
        {"thinking_budget_state_holder": SimpleNamespace(has_tracked_requests=lambda: True)},
    ],
    ids=[
        "logprobs 0", "all logprobs", "logprob_token_ids", "penalties", "bad_words",
        "allowed_token_ids", "logit_bias", "min_tokens", "custom processor",
        "custom argmax-invariant processor", "thinking budget",
    ],
)  # fmt: skip
def test_what_only_the_host_path_does_needs_the_host(changes):
    assert needs_host(_metadata(**changes))


def test_a_thinking_budget_that_nobody_has_stays_on_the_device():
    holder = SimpleNamespace(has_tracked_requests=lambda: False)
    assert not needs_host(_metadata(thinking_budget_state_holder=holder))


# -- drawing on the host's logits


def _sample(mode: str = "raw_logprobs", logits: torch.Tensor = LOGITS, **changes):
    draw = _Draw()
    output = HostSampler(mode, draw)(logits.clone(), _metadata(**changes))
    return output, draw


def test_tokens_are_those_that_the_op_draws():
    output, draw = _sample(max_num_logprobs=1)
    assert output.sampled_token_ids.tolist() == [[3], [3]]
    assert draw.logits.equal(LOGITS), "temperature and the rest are the op's work"


def test_the_op_gets_float32():
    _, draw = _sample(logits=LOGITS.bfloat16(), max_num_logprobs=1)
    assert draw.logits.dtype == torch.float32


def test_a_bias_reaches_the_op():
    processors = _processors()
    bias = next(iter(processors.non_argmax_invariant))
    bias.biases = {0: {2: 5.0}}
    bias.bias_tensor = torch.tensor([5.0])
    bias.logits_slice = (torch.tensor([0]), torch.tensor([2]))
    _, draw = _sample(logitsprocs=processors)
    expected = LOGITS.clone()
    expected[0, 2] += 5.0
    assert draw.logits.equal(expected)


def test_penalties_reach_the_op():
    _, draw = _sample(
        no_penalties=False,
        prompt_token_ids=torch.tensor([[0], [1]]),
        presence_penalties=torch.tensor([0.5, 0.0]),
        frequency_penalties=torch.tensor([0.0, 0.25]),
        output_token_ids=[[1], [3, 3]],
    )
    expected = LOGITS.clone()
    expected[0, 1] -= 0.5
    expected[1, 3] -= 2 * 0.25
    assert draw.logits.equal(expected)


def test_an_allowed_set_reaches_the_op():
    mask = torch.tensor([[True, False, True, True], [False] * 4])
    _, draw = _sample(allowed_token_ids_mask=mask)
    assert draw.logits[0].tolist() == [-torch.inf, 4.0, -torch.inf, -torch.inf]
    assert draw.logits[1].equal(LOGITS[1])


def test_a_custom_scaling_sees_logits_over_temperature():
    """Adding 1 to logits over 0.5 adds 0.5 to the logits; with temperature 0 it stays 1."""
    processors = _processors(custom=[_Custom(invariant=True)])
    _, draw = _sample(logitsprocs=processors, temperature=torch.tensor([0.5, 0.0]))
    expected = LOGITS.clone()
    expected[0, 0] += 0.5
    expected[1, 0] += 1.0
    assert torch.allclose(draw.logits, expected)


# -- what is reported

LOG_SOFTMAX = torch.log(torch.exp(LOGITS) / torch.exp(LOGITS).sum(-1, keepdim=True))


def test_raw_logprobs_are_before_any_parameter():
    output, _ = _sample(max_num_logprobs=2)
    reported = output.logprobs_tensors
    assert reported.logprob_token_ids.tolist() == [[3, 1, 3], [3, 3, 1]]
    assert torch.allclose(reported.logprobs[0], LOG_SOFTMAX[0, [3, 1, 3]], atol=1e-6)
    assert torch.allclose(reported.logprobs[1], LOG_SOFTMAX[1, [3, 3, 1]], atol=1e-6)


def test_processed_logits_have_temperature_and_top_k():
    """Row 0: over 0.5, two best of four kept (4 and 3); row 1 by top_p 0.8: the best alone."""
    output, _ = _sample("processed_logits", max_num_logprobs=2)
    reported = output.logprobs_tensors
    assert reported.logprobs[0].tolist() == [6.0, 8.0, 6.0]
    assert reported.logprobs[1].tolist()[:2] == [8.0, 8.0]
    assert reported.logprobs[1, 2] == -torch.inf


def test_processed_logprobs_are_normalised_after_processing():
    output, _ = _sample("processed_logprobs", max_num_logprobs=1, top_p=torch.tensor([1.0, 1.0]))
    # Row 0: exp(8) and exp(6) remain; token 3 has 1 / (1 + e^2).
    assert float(output.logprobs_tensors.logprobs[0, 0]) == pytest.approx(-2.126928, abs=1e-5)


def test_nobody_asks_and_nothing_is_reported():
    output, _ = _sample("processed_logprobs")
    assert output.logprobs_tensors is None
