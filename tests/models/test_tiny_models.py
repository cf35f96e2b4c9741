"""The tiny models must be able to tell a right engine from a wrong one."""

import pytest

from demo.reference import Greedy, greedy
from tests.models import vocabulary
from tests.models.prompt import BOUNDARY_LENGTHS, boundary_prompts, random_prompt
from tests.models.tiny import MAX_MODEL_LEN, TINY_MODELS

pytestmark = pytest.mark.slow

NEW_TOKENS = 32
# Float32 engines differ by about 1e-5 in these logits.
CLEAR_MARGIN = 1e-3


@pytest.fixture(scope="module", params=sorted(TINY_MODELS))
def continuations(request, tiny_model) -> list[Greedy]:
    return greedy(tiny_model(request.param), boundary_prompts(), NEW_TOKENS)


def test_no_greedy_choice_is_a_tie(continuations):
    assert min(min(continuation.margins) for continuation in continuations) > CLEAR_MARGIN


def test_continuations_do_not_loop(continuations):
    distinct = [len(set(continuation.token_ids)) for continuation in continuations]
    assert min(distinct) > NEW_TOKENS // 2, distinct


def test_continuations_depend_on_the_prompt(continuations):
    assert len({tuple(c.token_ids) for c in continuations}) == len(BOUNDARY_LENGTHS)


@pytest.mark.parametrize("name", sorted(TINY_MODELS))
def test_order_of_the_prompt_matters(name, tiny_model):
    prompt = random_prompt(20)
    swapped = [*prompt[:3], prompt[4], prompt[3], *prompt[5:]]
    first, second = greedy(tiny_model(name), [prompt, swapped], NEW_TOKENS)
    assert first.token_ids != second.token_ids


def test_the_longest_prompt_fits_the_model():
    assert max(BOUNDARY_LENGTHS) + NEW_TOKENS <= MAX_MODEL_LEN


def test_the_tokenizer_gives_back_any_text():
    tokenizer = vocabulary.build_tokenizer()
    text = "Pages, 3 buckets — été\n"
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(ids) == text
    assert len(tokenizer.get_vocab()) == vocabulary.SIZE
