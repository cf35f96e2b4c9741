"""Converted directories hold the model that was exported, to the last bit of bfloat16."""

import pytest
import torch
from transformers import AutoModelForCausalLM

from demo.conversion.directory import write_model_directory
from demo.conversion.llama import split_rope_pairs
from demo.errors import DemoError
from tests.demo import gguf_writer
from tests.demo.gguf_writer import write_gguf
from tests.models.prompt import random_prompt
from tests.models.tiny import TINY_MODELS, draw_parameters

VOCABULARY = ["t", "0", *(f"t{i}" for i in range(510))]


@pytest.fixture(scope="module", params=["llama", "gemma3"])
def exported(request, tmp_path_factory):
    """A tiny model whose weights bfloat16 can hold, and its GGUF file."""
    model = TINY_MODELS[request.param]().float().eval()
    draw_parameters(model, seed=1)
    with torch.no_grad():
        for parameter in model.parameters():
            # Multiples of 1/64 below 2 stay exact in bfloat16, and so do a norm's 1 + weight.
            parameter.copy_((parameter.clamp(-1, 1) * 64).round() / 64)
    if request.param == "gemma3":
        # GGUF holds neither the pattern nor both rope bases: they are Gemma's constants.
        model.config.layer_types[:] = ["sliding_attention"] * 3
    path = tmp_path_factory.mktemp("gguf") / "model.gguf"
    write_gguf(model, path, VOCABULARY)
    return model, path


def test_a_converted_model_has_the_logits_of_the_exported_one(exported, tmp_path):
    model, path = exported
    write_model_directory([path], tmp_path)
    converted = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32).eval()
    with torch.inference_mode():
        ids = torch.tensor([random_prompt(70)])
        torch.testing.assert_close(
            converted(ids).logits, reload(model)(ids).logits, rtol=0, atol=1e-5
        )


def reload(model):
    """The same model built from its configuration as it is now."""
    again = type(model)(model.config).float().eval()
    again.load_state_dict(model.state_dict())
    return again


def test_parts_are_joined_in_the_order_given(exported, tmp_path):
    _, path = exported
    content, parts = path.read_bytes(), []
    for index, start in enumerate(range(0, len(content), 400_000)):
        parts.append(tmp_path / f"part{index}")
        parts[-1].write_bytes(content[start : start + 400_000])
    whole, joined = tmp_path / "whole", tmp_path / "joined"
    for directory, sources in ((whole, [path]), (joined, parts)):
        directory.mkdir()
        write_model_directory(sources, directory)
    assert len(parts) > 1
    for file in whole.iterdir():
        assert file.read_bytes() == (joined / file.name).read_bytes()


def test_everything_unknown_is_named_in_one_sentence(tmp_path):
    model = TINY_MODELS["qwen3"]().float()
    path = tmp_path / "qwen3.gguf"
    names = {"self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gguf_writer, "_LLAMA", {**gguf_writer._LLAMA, **names})
        write_gguf(model, path, VOCABULARY)
    with pytest.raises(DemoError) as refusal:
        write_model_directory([path], tmp_path)
    sentence = str(refusal.value)
    assert "blk.0.attn_q_norm.weight" in sentence
    assert "blk.2.attn_k_norm.weight" in sentence
    assert "\n" not in sentence


def test_rope_pairs_become_halves():
    rows = torch.arange(2 * 6).reshape(12, 1).numpy()
    assert split_rope_pairs(rows, heads=2).ravel().tolist() == [
        0,
        2,
        4,
        1,
        3,
        5,
        6,
        8,
        10,
        7,
        9,
        11,
    ]
