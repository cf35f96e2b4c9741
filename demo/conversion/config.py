"""Writes ``config.json`` and ``generation_config.json`` from the GGUF metadata."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from demo.conversion.family import Family
from demo.conversion.source import GgufSource
from demo.conversion.weight import STORED_DTYPE


def write_config(source: GgufSource, family: Family, directory: Path) -> None:
    """Writes both configuration files into ``directory``."""
    write_json(directory / "config.json", model_config(source, family))
    write_json(directory / "generation_config.json", {"do_sample": False, **_special_ids(source)})


def model_config(source: GgufSource, family: Family) -> dict[str, Any]:
    """Returns the content of ``config.json``."""
    epsilon = source.hyperparameter("attention.layer_norm_rms_epsilon")
    heads = source.hyperparameter("attention.head_count")
    return {
        **family.config(source),
        **_special_ids(source),
        "dtype": STORED_DTYPE.name,
        "vocab_size": len(source.required("tokenizer.ggml.tokens")),
        "hidden_size": source.hyperparameter("embedding_length"),
        "intermediate_size": source.hyperparameter("feed_forward_length"),
        "num_hidden_layers": source.hyperparameter("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": source.hyperparameter("attention.head_count_kv", heads),
        "max_position_embeddings": source.hyperparameter("context_length"),
        # Kept as float32 in the file; its shortest decimal form is the published number.
        "rms_norm_eps": float(str(np.float32(epsilon))),
        "tie_word_embeddings": "output.weight" not in source.tensor_names,
        "attention_dropout": 0.0,
        "initializer_range": 0.02,
        "use_cache": True,
    }


def write_json(path: Path, content: Any) -> None:
    """Writes ``content`` as indented JSON."""
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _special_ids(source: GgufSource) -> dict[str, int | None]:
    return {
        f"{ours}_token_id": source.optional(f"tokenizer.ggml.{theirs}_token_id")
        for ours, theirs in (("bos", "bos"), ("eos", "eos"), ("pad", "padding"))
    }
