"""Llama: the rows of q and k are reordered for llama.cpp's rope, all else is a new name."""

from typing import Any

import numpy as np

from demo.conversion.source import GgufSource

BLOCK_TENSORS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def restore(gguf_name: str, values: np.ndarray, source: GgufSource) -> np.ndarray:
    """Puts the rows of a q or k projection back into Hugging Face's order."""
    heads = source.hyperparameter("attention.head_count")
    if ".attn_q." in gguf_name:
        return split_rope_pairs(values, heads)
    if ".attn_k." in gguf_name:
        return split_rope_pairs(values, source.hyperparameter("attention.head_count_kv", heads))
    return values


def split_rope_pairs(rows: np.ndarray, heads: int) -> np.ndarray:
    """Reorders each head's rows from rope pairs to two halves.

    llama.cpp rotates neighbours (0, 1), (2, 3), ...; Hugging Face rotates row i with row
    i + head_dim / 2. So the even rows of a head become its first half, the odd ones its second.

    Args:
        rows: (heads * head_dim, ...), a projection's weight or bias.
        heads: Number of heads that ``rows`` holds.
    """
    per_head = rows.reshape(heads, -1, *rows.shape[1:])
    halves = np.concatenate([per_head[:, 0::2], per_head[:, 1::2]], axis=1)
    return halves.reshape(rows.shape)


def config(source: GgufSource) -> dict[str, Any]:
    """Returns what only a Llama ``config.json`` holds."""
    heads = source.hyperparameter("attention.head_count")
    hidden = source.hyperparameter("embedding_length")
    theta = source.hyperparameter("rope.freq_base", 10_000.0)
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": False,
        "mlp_bias": False,
        "hidden_act": "silu",
        "head_dim": source.hyperparameter("rope.dimension_count", hidden // heads),
        "rope_parameters": {"rope_type": "default", "rope_theta": theta},
    }
