"""Gemma 3 (text): norms are stored as 1 + weight, and every sixth layer attends to all tokens."""

from typing import Any

import numpy as np

from demo.conversion.source import GgufSource

BLOCK_TENSORS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "post_ffw_norm": "post_feedforward_layernorm",
}
# The GGUF format has no key for these two: they are the same in all Gemma 3 checkpoints.
_LAYERS_PER_FULL_ATTENTION = 6
_LOCAL_ROPE_THETA = 10_000.0


def restore(gguf_name: str, values: np.ndarray, source: GgufSource) -> np.ndarray:
    """Turns a norm's stored scale, 1 + weight, back into the weight."""
    del source
    return values - np.float32(1) if gguf_name.endswith("norm.weight") else values


def config(source: GgufSource) -> dict[str, Any]:
    """Returns what only a Gemma 3 ``config.json`` holds.

    ``query_pre_attn_scalar`` equals the head size in every Gemma 3 size except 27B.
    """
    head_dim = source.hyperparameter("attention.key_length")
    layers = source.hyperparameter("block_count")
    return {
        "architectures": ["Gemma3ForCausalLM"],
        "model_type": "gemma3_text",
        "attention_bias": False,
        "hidden_activation": "gelu_pytorch_tanh",
        "head_dim": head_dim,
        "query_pre_attn_scalar": head_dim,
        "sliding_window": source.hyperparameter("attention.sliding_window"),
        "layer_types": [
            "sliding_attention" if layer % _LAYERS_PER_FULL_ATTENTION else "full_attention"
            for layer in range(1, layers + 1)
        ],
        "rope_parameters": {
            "full_attention": {
                "rope_type": "default",
                "rope_theta": source.hyperparameter("rope.freq_base", 1_000_000.0),
            },
            "sliding_attention": {"rope_type": "default", "rope_theta": _LOCAL_ROPE_THETA},
        },
        "attn_logit_softcapping": None,
        "final_logit_softcapping": None,
    }
