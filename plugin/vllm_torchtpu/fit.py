"""Refuses, while the configuration is built, what arithmetic shows cannot fit the device."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vllm_torchtpu import memory
from vllm_torchtpu.errors import TorchTpuError

if TYPE_CHECKING:
    from vllm.config import VllmConfig

_FLOAT32_BYTES = 4


def activation_bytes(config: VllmConfig) -> int:
    """Returns an upper estimate of what one step needs beside weights and cache.

    XLA frees a buffer after its last use, so the largest layer counts, not their sum: the residual
    stream twice, q, k, v and attention output, both halves of the MLP and their product, in the
    model's dtype; and the logits with the sampler's noise and scratch in float32.
    """
    model, scheduler = config.model_config, config.scheduler_config
    hidden = model.get_hidden_size()
    heads = model.get_num_attention_heads(config.parallel_config)
    kv_heads = model.get_num_kv_heads(config.parallel_config)
    intermediate = getattr(model.hf_text_config, "intermediate_size", None) or 4 * hidden
    per_token = 2 * hidden + 2 * (heads + kv_heads) * model.get_head_size() + 3 * intermediate
    tokens = scheduler.max_num_batched_tokens * per_token * model.dtype.itemsize
    logits = scheduler.max_num_seqs * model.get_vocab_size() * _FLOAT32_BYTES * 4
    return tokens + logits


def refuse_what_cannot_fit(config: VllmConfig) -> None:
    """Checks weights, activations and the cache of one longest request against the device.

    Weights are known here only for a checkpoint on disk; the worker checks again with the loaded
    ones, which is why an estimate that errs must err low.

    Raises:
        TorchTpuError: Something cannot fit; the sentence carries the numbers.
    """
    model = config.model_config
    if model is None:
        return
    weights = _checkpoint_bytes(Path(model.model), model.dtype.itemsize)
    if weights is None:
        return
    total = memory.total_bytes()
    budget = memory.Budget(
        total=total,
        usable=int(total * config.cache_config.gpu_memory_utilization),
        weights=weights,
        activations=activation_bytes(config),
    )
    available = memory.kv_cache_bytes(budget, config.cache_config.kv_cache_memory_bytes)
    needed = _longest_request_bytes(config)
    if needed > available:
        raise TorchTpuError(
            f"--max-model-len: found {model.max_model_len}, for which one request needs "
            f"{memory.size(needed)} of KV cache, but there are {memory.size(available)} (the device "
            f"has {budget}); lower it to at most {model.max_model_len * available // needed}"
            + memory.virtual_advice()
        )


def _checkpoint_bytes(directory: Path, itemsize: int) -> int | None:
    """Counts the elements of a local checkpoint's safetensors by their headers."""
    files = sorted(directory.glob("*.safetensors")) if directory.is_dir() else []
    if not files:
        return None
    from safetensors import safe_open

    elements = 0
    for file in files:
        with safe_open(file, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118 - a handle is not a mapping
                size = 1
                for length in tensors.get_slice(name).get_shape():
                    size *= length
                elements += size
    return elements * itemsize


def _longest_request_bytes(config: VllmConfig) -> int:
    """Returns the cache of one request of max_model_len tokens; 0 where windows make it less."""
    model = config.model_config
    if model.get_sliding_window() is not None:
        return 0
    layers = model.get_num_layers(config.parallel_config)
    kv_heads = model.get_num_kv_heads(config.parallel_config)
    per_token = 2 * layers * kv_heads * model.get_head_size() * model.dtype.itemsize
    return per_token * model.max_model_len
