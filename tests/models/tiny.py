"""Tiny random models of real architectures, as Hugging Face directories.

Every parameter is drawn anew, norms too, so that a weight in the wrong place shows in the tokens.
The scales keep the attention sharp (positions matter) and the continuations lively.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from tests.models import vocabulary

MAX_MODEL_LEN = 512
SLIDING_WINDOW = 32

_MATRIX_STD = 0.2
_NORM_STD = 0.2
# Gemma ties its embedding to the output: a small one keeps a token from predicting itself, and
# a large last norm brings the logits back to the others' scale.
_TIED_EMBEDDING_STD = 0.01
_TIED_LAST_NORM_SCALE = 20.0
# Normalised queries and keys alone would give a nearly uniform attention.
_QUERY_KEY_NORM_SCALE = 2.0
# Chosen so that no greedy choice among the boundary prompts is close (test_tiny_models.py).
_SEEDS: Mapping[str, int] = {"llama": 4, "qwen3": 6, "gemma3": 5}
_SHAPE: Mapping[str, Any] = {
    "vocab_size": vocabulary.SIZE,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,  # so heads * head_dim is not the hidden size
    "max_position_embeddings": MAX_MODEL_LEN,
    "pad_token_id": vocabulary.PAD,
    "bos_token_id": vocabulary.BOS,
    "eos_token_id": vocabulary.EOS,
    "dtype": "float32",
}


def llama() -> PreTrainedModel:
    """Llama: 2 layers, untied."""
    return LlamaForCausalLM(LlamaConfig(**_SHAPE, num_hidden_layers=2, tie_word_embeddings=False))


def qwen3() -> PreTrainedModel:
    """Qwen3: 3 layers, untied, with q and k norms."""
    return Qwen3ForCausalLM(Qwen3Config(**_SHAPE, num_hidden_layers=3, tie_word_embeddings=False))


def gemma3() -> PreTrainedModel:
    """Gemma 3 (text): two sliding-window layers around a full one, tied, two rope bases."""
    return Gemma3ForCausalLM(
        Gemma3TextConfig(
            **_SHAPE,
            num_hidden_layers=3,
            tie_word_embeddings=True,
            sliding_window=SLIDING_WINDOW,
            layer_types=["sliding_attention", "full_attention", "sliding_attention"],
            query_pre_attn_scalar=64,
        )
    )


TINY_MODELS: Mapping[str, Callable[[], PreTrainedModel]] = {
    "llama": llama,
    "qwen3": qwen3,
    "gemma3": gemma3,
}


def write_tiny_model(name: str, directory: Path) -> None:
    """Writes model ``name`` of TINY_MODELS and its tokenizer into ``directory``, in float32."""
    model = TINY_MODELS[name]().float().eval()
    draw_parameters(model, _SEEDS[name])
    model.save_pretrained(directory)
    vocabulary.build_tokenizer().save_pretrained(directory)


def draw_parameters(model: PreTrainedModel, seed: int) -> None:
    """Fills all parameters with normal values that depend on the seed and their order only."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            mean, std = _distribution(name, parameter, model.config)
            parameter.normal_(mean, std, generator=generator)


def _distribution(name: str, parameter: torch.Tensor, config: Any) -> tuple[float, float]:
    """Returns mean and standard deviation of a parameter."""
    tied = config.tie_word_embeddings
    if parameter.ndim > 1:
        small = tied and "embed_tokens" in name
        return 0.0, _TIED_EMBEDDING_STD if small else _MATRIX_STD
    scale = 1.0
    if name.endswith(("q_norm.weight", "k_norm.weight")):
        scale = _QUERY_KEY_NORM_SCALE
    elif tied and name == "model.norm.weight":
        scale = _TIED_LAST_NORM_SCALE
    # Gemma's norms multiply by 1 + weight, the others by the weight itself.
    mean = scale - 1.0 if config.model_type == "gemma3_text" else scale
    return mean, _NORM_STD
