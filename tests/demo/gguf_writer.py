"""Writes tiny Hugging Face models as GGUF, as llama.cpp's exporter does: the inverse of ours.

The formulas are llama.cpp's (`LlamaModel.permute`, Gemma's `norm.weight + 1`), not those under test.
"""

from pathlib import Path

import numpy as np
from gguf import GGUFWriter
from transformers import PreTrainedModel

_LLAMA = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_GEMMA3 = {
    **_LLAMA,
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
_TOP = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def write_gguf(model: PreTrainedModel, path: Path, tokens: list[str]) -> None:
    """Writes the model's weights in float32 and a byte-level vocabulary of ``tokens``, with one merge."""
    config = model.config
    gemma = config.model_type == "gemma3_text"
    architecture = "gemma3" if gemma else "llama"
    writer = GGUFWriter(path, architecture)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    rope = config.rope_parameters
    writer.add_rope_freq_base((rope["full_attention"] if gemma else rope)["rope_theta"])
    if gemma:
        writer.add_key_length(config.head_dim)
        writer.add_sliding_window(config.sliding_window)
    else:
        writer.add_rope_dimension_count(config.head_dim)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * len(tokens))
    writer.add_token_merges(["t 0"])
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        values = tensor.float().numpy()
        if gemma and name.endswith("norm.weight"):
            values = values + 1
        elif not gemma and ".q_proj." in name:
            values = _permuted(values, config.num_attention_heads)
        elif not gemma and ".k_proj." in name:
            values = _permuted(values, config.num_key_value_heads)
        writer.add_tensor(
            _gguf_name(name, _GEMMA3 if gemma else _LLAMA), np.ascontiguousarray(values)
        )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _permuted(weights: np.ndarray, heads: int) -> np.ndarray:
    halves = weights.reshape(heads, 2, weights.shape[0] // heads // 2, *weights.shape[1:])
    return halves.swapaxes(1, 2).reshape(weights.shape)


def _gguf_name(name: str, block: dict[str, str]) -> str:
    stem, leaf = name.rsplit(".", 1)
    if stem in _TOP:
        return f"{_TOP[stem]}.{leaf}"
    _, _, layer, part = stem.split(".", 3)
    return f"blk.{layer}.{block[part]}.{leaf}"
