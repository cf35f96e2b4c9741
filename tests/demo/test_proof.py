"""A comparison tells right tokens from wrong ones, and says where they part."""

from demo.chat import Tokens
from demo.proof import compare


def test_equal_tokens_all_match():
    tokens = Tokens([1, 2], [3, 4, 5])
    found = compare(["q"], [tokens], [tokens])
    assert (found.compared, found.matching, found.differences) == (3, 3, ())


def test_only_the_tokens_before_the_first_difference_match():
    found = compare(["q"], [Tokens([1], [3, 9, 5])], [Tokens([1], [3, 4, 5])])
    assert (found.compared, found.matching) == (3, 1)
    assert found.differences == (
        "proof: 'q' has token 9 at 1 where transformers in float32 has 4; compare the logits there",
    )


def test_a_short_continuation_is_a_difference():
    found = compare(["q"], [Tokens([1], [3])], [Tokens([1], [3, 4])])
    assert found.matching == 1
    assert "token missing at 1" in found.differences[0]


def test_a_prompt_tokenised_differently_matches_nothing():
    found = compare(["q"], [Tokens([1, 1], [3])], [Tokens([1], [3])])
    assert (found.compared, found.matching) == (1, 0)
    assert found.differences == (
        "proof: 'q' is tokenised differently by transformers; compare the chat templates",
    )
