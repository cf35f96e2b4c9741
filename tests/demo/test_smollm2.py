"""The converted SmolLM2 is the published model: its weights, its configuration, its answers."""

import json

import pytest
import torch
from gguf import GGUFReader
from gguf.quants import dequantize
from safetensors import safe_open
from transformers import AutoTokenizer

from demo import proof
from demo.checkpoint import SMOLLM2, locate
from demo.reference import chat_prompts, greedy
from demo.run import DEFAULT_QUESTION, EXPECTED_WORD

pytestmark = pytest.mark.slow

# bfloat16 rounds logits of about 20 to steps of 1/8.
CLEAR_IN_BFLOAT16 = 0.4


@pytest.fixture(scope="module")
def tensors():
    return {tensor.name: tensor for tensor in GGUFReader(locate(SMOLLM2)).tensors}


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("model.embed_tokens.weight", "token_embd.weight"),
        ("model.layers.0.mlp.down_proj.weight", "blk.0.ffn_down.weight"),
        ("model.layers.29.self_attn.v_proj.weight", "blk.29.attn_v.weight"),
        ("model.norm.weight", "output_norm.weight"),
    ],
)
def test_weights_are_the_dequantised_ones(ours, theirs, tensors, smollm2_directory):
    source = tensors[theirs]
    expected = torch.from_numpy(dequantize(source.data, source.tensor_type).copy()).bfloat16()
    with safe_open(smollm2_directory / "model.safetensors", "pt") as weights:
        assert torch.equal(weights.get_tensor(ours), expected)


def test_every_tensor_is_there(tensors, smollm2_directory):
    with safe_open(smollm2_directory / "model.safetensors", "pt") as weights:
        assert len(weights.keys()) == len(tensors)


def test_the_configuration_is_the_published_one(smollm2_directory):
    config = json.loads((smollm2_directory / "config.json").read_text())
    published = {
        "hidden_size": 576,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "rms_norm_eps": 1e-05,
        "tie_word_embeddings": True,
        "vocab_size": 49152,
    }
    assert {key: config[key] for key in published} == published


def test_transformers_answers_the_default_question(smollm2_directory):
    """Wrong rope halves, norms or tokens would not name the capital."""
    [answer] = greedy(smollm2_directory, chat_prompts(smollm2_directory, [DEFAULT_QUESTION]), 8)
    assert EXPECTED_WORD in AutoTokenizer.from_pretrained(smollm2_directory).decode(
        answer.token_ids
    )


def test_no_token_of_the_proof_is_close(smollm2_directory):
    prompts = chat_prompts(smollm2_directory, proof.QUESTIONS)
    for continuation in greedy(smollm2_directory, prompts, proof.TOKENS):
        assert min(continuation.margins) > CLEAR_IN_BFLOAT16


def test_the_background_reference_gives_the_same_tokens(smollm2_directory):
    prompts = chat_prompts(smollm2_directory, proof.QUESTIONS)
    expected = greedy(smollm2_directory, prompts, proof.TOKENS)
    with proof.running_reference(smollm2_directory) as reference:
        found = reference.result(timeout_s=100)
    assert [tokens.prompt_token_ids for tokens in found] == prompts
    assert [tokens.token_ids for tokens in found] == [c.token_ids for c in expected]
