"""Every sampling parameter has its effect, checked against values worked out independently.

The engine's own raw logits (`logprobs=-1`, held to transformers here) are the input of the NumPy
computations; parameters must change the tokens exactly as their definition says.
"""

import functools

import numpy as np
import pytest

from tests.e2e.engine import engine, generate, greedy_params, tokens
from tests.models import vocabulary
from tests.models.prompt import random_prompt

pytestmark = pytest.mark.engine

PROMPT = random_prompt(12, seed=40)
OTHER_PROMPTS = [random_prompt(n, seed=41) for n in (5, 33, 20)]


@pytest.fixture(scope="module")
def directory(tiny_model):
    return tiny_model("llama")


@pytest.fixture(scope="module")
def llm(directory):
    with engine(directory) as started:
        yield started


@pytest.fixture(scope="module")
def reference_logprobs(directory):
    """transformers' float64 log-softmax of the token after PROMPT, [vocabulary]."""
    return _reference(directory, PROMPT)[-1]


def _logits(directory, ids):
    import torch

    with torch.inference_mode():
        return _transformer(directory)(torch.tensor([ids])).logits[0].double().numpy()


def _reference(directory, ids):
    logits = _logits(directory, ids)
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


@functools.cache
def _transformer(directory):
    import torch
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()


def _params(count=8, **options):
    from vllm import SamplingParams

    return SamplingParams(
        **({"temperature": 1.0, "max_tokens": count, "ignore_eos": True} | options)
    )


def _run(llm, **options):
    return tokens(generate(llm, [PROMPT], _params(**options)))[0]


def _greedy(llm, count=8, **options):
    return tokens(generate(llm, [PROMPT], greedy_params(count, **options)))[0]


# -- noise


def test_a_seed_gives_the_same_text_whatever_else_is_in_the_batch(llm):
    alone = _run(llm, seed=7, count=16)
    crowd = generate(
        llm,
        [OTHER_PROMPTS[0], PROMPT, *OTHER_PROMPTS[1:]],
        _params(16, seed=1),
        _params(16, seed=7),
        greedy_params(3),
        _params(9, presence_penalty=1.5, logprobs=2),
    )
    assert tokens(crowd)[1] == alone
    assert _run(llm, seed=8, count=16) != alone


def test_a_seed_does_not_depend_on_the_host_path(llm):
    """Asking for logprobs moves the batch to the host path; the draw must stay."""
    assert _run(llm, seed=7) == _run(llm, seed=7, logprobs=1)
    assert _run(llm, seed=7, top_k=9, top_p=0.8) == _run(
        llm, seed=7, top_k=9, top_p=0.8, logprobs=1
    )


def test_a_seeded_prompt_may_be_prefilled_in_chunks(llm):
    prompt = random_prompt(150, seed=43)
    first, second = (tokens(generate(llm, [prompt], _params(seed=9))) for _ in range(2))
    assert first == second


def test_without_a_seed_draws_differ(llm):
    assert len({tuple(_run(llm)) for _ in range(4)}) == 4


def test_first_tokens_follow_the_models_distribution(llm, reference_logprobs):
    """800 seeded draws against transformers' probabilities, by Pearson's statistic."""
    draws = 800
    params = [_params(1, seed=seed) for seed in range(draws)]
    drawn = np.array([t[0] for t in tokens(generate(llm, [PROMPT] * draws, *params))])
    expected = np.exp(reference_logprobs) * draws
    cells = expected >= 5
    observed = np.bincount(drawn, minlength=len(expected))
    pooled = np.append(observed[cells], observed[~cells].sum())
    wanted = np.append(expected[cells], expected[~cells].sum())
    statistic = ((pooled - wanted) ** 2 / wanted).sum()
    n = cells.sum()
    # Wilson and Hilferty's bound that a true sample exceeds once in a million runs.
    assert statistic < n * (1 - 2 / (9 * n) + 4.753 * np.sqrt(2 / (9 * n))) ** 3


def test_temperature_sharpens_towards_greedy(llm):
    assert _run(llm, seed=3, temperature=0.01) == _greedy(llm)
    assert _run(llm, seed=3, temperature=2.0) != _greedy(llm)


@pytest.mark.parametrize(
    ("options", "allowed"),
    [
        ({"top_k": 3}, lambda p: p >= np.sort(p)[-3]),
        ({"top_p": 0.3}, lambda p: _top_p(p, 0.3)),
        ({"min_p": 0.2}, lambda p: p >= 0.2 * p.max()),
        ({"top_k": 5, "top_p": 0.6}, lambda p: (p >= np.sort(p)[-5]) & _top_p(_keep(p, 5), 0.6)),
    ],
    ids=["top_k", "top_p", "min_p", "top_k and top_p"],
)
def test_filters_allow_exactly_their_tokens(llm, reference_logprobs, options, allowed):
    """At temperature 2 every likely allowed token comes up, and no other one."""
    scaled = np.exp(reference_logprobs / 2)
    mask = allowed(scaled / scaled.sum())
    params = [_params(1, seed=s, temperature=2.0, **options) for s in range(300)]
    drawn = {t[0] for t in tokens(generate(llm, [PROMPT] * 300, *params))}
    assert drawn <= set(np.flatnonzero(mask))
    # A token that 300 draws miss once in e^-20 runs, or more often, may be missing.
    kept = np.where(mask, scaled, 0)
    assert drawn >= set(np.flatnonzero(300 * kept / kept.sum() >= 20))


def _keep(p, k):
    kept = np.where(p >= np.sort(p)[-k], p, 0)
    return kept / kept.sum()


def _top_p(p, bound):
    order = np.argsort(-p)
    before = np.concatenate([[0], np.cumsum(p[order])[:-1]])
    mask = np.zeros(len(p), bool)
    mask[order[before < bound]] = True
    return mask


# -- what the host path does


def test_logit_bias_forces_and_forbids(llm):
    first = _greedy(llm)[0]
    assert _greedy(llm, logit_bias={first: -100})[0] != first
    assert _greedy(llm, logit_bias={77: 100}) == [77] * 8


def test_allowed_token_ids_are_the_only_ones(llm, reference_logprobs):
    allowed = [50, 60, 70]
    assert set(_run(llm, seed=1, allowed_token_ids=allowed, count=20)) <= set(allowed)
    best = max(allowed, key=lambda t: reference_logprobs[t])
    assert _greedy(llm, allowed_token_ids=allowed)[0] == best


def test_bad_words_never_appear(llm, directory):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(directory)
    plain = _greedy(llm, 6)
    word = tokenizer.decode([plain[0]])
    banned = _greedy(llm, 6, bad_words=[word])
    assert banned != plain
    assert word not in [tokenizer.decode([t]) for t in banned]


@pytest.mark.parametrize(
    "penalty",
    [{"repetition_penalty": 1.3}, {"presence_penalty": 2.0}, {"frequency_penalty": 1.5}],
    ids=lambda penalty: next(iter(penalty)),
)
def test_penalties_follow_their_definition(llm, directory, penalty):
    """Step by step from transformers' logits; the bias makes a text that repeats itself."""
    bias = {77: 6.0, 78: 5.5}
    got = _greedy(llm, 12, logit_bias=bias, **penalty)
    text = list(PROMPT)
    for token in got:
        assert token == _penalised(directory, text, bias, **penalty)
        text.append(token)
    assert got != _greedy(llm, 12, logit_bias=bias)


def _penalised(
    directory, text, bias, repetition_penalty=1.0, presence_penalty=0.0, frequency_penalty=0.0
):
    scores = _logits(directory, text)[-1]
    for token, value in bias.items():
        scores[token] += value
    for token in set(text):
        factor = 1 / repetition_penalty if scores[token] > 0 else repetition_penalty
        scores[token] *= factor
    output = text[len(PROMPT) :]
    for token in set(output):
        scores[token] -= presence_penalty + frequency_penalty * output.count(token)
    return int(scores.argmax())


def test_min_tokens_holds_back_the_end(llm):
    ends = {"logit_bias": {vocabulary.EOS: 100}, "temperature": 0.0, "ignore_eos": False}
    assert len(_run(llm, **ends, count=8)) == 1
    assert len(_run(llm, **ends, count=8, min_tokens=5)) == 6


def test_stop_strings_and_stop_tokens_end_the_text(llm, directory):
    plain = _greedy(llm, 12)
    assert _greedy(llm, 12, stop_token_ids=[plain[4]]) == plain[: plain.index(plain[4]) + 1]
    out = generate(llm, [PROMPT], greedy_params(12))[0].outputs[0].text
    stop = out[5:8]
    ended = generate(llm, [PROMPT], greedy_params(12, stop=[stop]))[0].outputs[0]
    assert ended.text == out[: out.index(stop)]
    assert ended.stop_reason == stop


def test_n_gives_different_completions_that_a_seed_repeats(llm):
    first = generate(llm, [PROMPT], _params(8, n=3, seed=4))[0].outputs
    second = generate(llm, [PROMPT], _params(8, n=3, seed=4))[0].outputs
    assert len({tuple(o.token_ids) for o in first}) == 3
    assert [o.token_ids for o in first] == [o.token_ids for o in second]


def test_structured_output_keeps_to_its_choices(llm):
    from vllm.sampling_params import StructuredOutputsParams

    choice = StructuredOutputsParams(choice=["yes", "no"])
    beside = [_params(8, seed=7), _params(8, temperature=0.0, structured_outputs=choice,
                                          ignore_eos=False)]  # fmt: skip
    outputs = generate(llm, [PROMPT, OTHER_PROMPTS[0]], *beside)
    assert outputs[1].outputs[0].text in ("yes", "no")
    assert tokens(outputs)[0] == _run(llm, seed=7)


# -- log probabilities


@pytest.mark.parametrize("count", [0, 1, 20, -1])
def test_logprobs_equal_transformers(llm, reference_logprobs, count):
    output = generate(llm, [PROMPT], greedy_params(1, logprobs=count))[0].outputs[0]
    found = output.logprobs[0]
    token = output.token_ids[0]
    expected = len(reference_logprobs) if count == -1 else max(count, 1)
    assert len(found) == expected
    for token_id, value in found.items():
        assert value.logprob == pytest.approx(reference_logprobs[token_id], abs=2e-4)
    assert found[token].rank == 1 or count == -1


def test_prompt_logprobs_equal_transformers_over_chunks(llm, directory):
    """A prompt of several steps and of more rows than any row bucket."""
    prompt = random_prompt(150, seed=42)
    output = generate(llm, [prompt], greedy_params(1, prompt_logprobs=2))[0]
    reference = _reference(directory, prompt)
    assert output.prompt_logprobs[0] is None
    assert len(output.prompt_logprobs) == len(prompt)
    for position in range(1, len(prompt)):
        found = output.prompt_logprobs[position]
        assert prompt[position] in found
        for token_id, value in found.items():
            assert value.logprob == pytest.approx(reference[position - 1][token_id], abs=2e-4)


def test_prompt_logprobs_beside_other_requests(llm):
    prompts = [PROMPT, *OTHER_PROMPTS]
    alone = generate(llm, [PROMPT], greedy_params(2, prompt_logprobs=1))[0].prompt_logprobs
    params = [greedy_params(2, prompt_logprobs=1), _params(5, seed=1), greedy_params(4),
              greedy_params(3, logprobs=2)]  # fmt: skip
    beside = generate(llm, prompts, *params)[0].prompt_logprobs
    for one, other in zip(alone[1:], beside[1:], strict=True):
        assert one.keys() == other.keys()
        assert [v.logprob for v in one.values()] == pytest.approx(
            [v.logprob for v in other.values()], abs=1e-4
        )
