"""Refuses, while the configuration is built, what arithmetic shows cannot fit the device."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch

from vllm_torchtpu import memory
from vllm_torchtpu.errors import TorchTpuError

if TYPE_CHECKING:
    from vllm.config import ModelConfig, VllmConfig

# A page of 128 tokens fills the lanes of a TPU register, and one page is one step of attention.
PREFERRED_BLOCK_TOKENS = 128

_FLOAT32_BYTES = 4
_CACHE_DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}


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
    if not isinstance(intermediate, int):  # one per layer: the largest counts
        intermediate = max(intermediate)
    per_token = 2 * hidden + 2 * (heads + kv_heads) * model.get_head_size() + 3 * intermediate
    tokens = scheduler.max_num_batched_tokens * per_token * model.dtype.itemsize
    logits = scheduler.max_num_seqs * model.get_vocab_size() * _FLOAT32_BYTES * 4
    return tokens + logits


def refuse_what_cannot_fit(config: VllmConfig) -> None:
    """Checks weights, activations and the cache of one longest request against the device.

    Weights are known here only for a checkpoint on disk, given or downloaded; the worker checks
    again with the loaded ones, which is why an estimate that errs must err low.

    Raises:
        TorchTpuError: Something cannot fit; the sentence carries the numbers.
    """
    model = config.model_config
    if model is None:
        return
    directory = _local_directory(model, config.load_config.download_dir)
    weights = directory and _checkpoint_bytes(directory, model.dtype.itemsize)
    if not weights:
        return
    total = memory.total_bytes()
    budget = memory.Budget(
        total=total,
        usable=int(total * config.cache_config.gpu_memory_utilization),
        weights=weights,
        activations=activation_bytes(config),
    )
    cache = config.cache_config
    available = memory.kv_cache_bytes(budget, cache.kv_cache_memory_bytes)
    block = cache.block_size if cache.user_specified_block_size else PREFERRED_BLOCK_TOKENS
    block_bytes = block * _token_bytes(config)
    if cache.num_gpu_blocks_override is not None:
        _refuse_blocks(cache.num_gpu_blocks_override, block_bytes, available, budget)
        available = cache.num_gpu_blocks_override * block_bytes
    if _has_windows(model) or model.original_max_model_len == -1:
        return  # windows take less than this counts; vLLM fits the length itself
    # vLLM keeps one block to itself.
    longest = (available // block_bytes - 1) * block
    if model.max_model_len > longest:
        raise TorchTpuError(
            f"--max-model-len: found {model.max_model_len}, for which one request needs "
            f"{memory.size(model.max_model_len * _token_bytes(config))} of KV cache, but there are "
            f"{memory.size(available)} (the device has {budget}); lower it to at most "
            f"{max(longest, 0)}" + memory.virtual_advice()
        )


def _refuse_blocks(count: int, block_bytes: int, available: int, budget: memory.Budget) -> None:
    if count * block_bytes > available:
        raise TorchTpuError(
            f"--num-gpu-blocks-override: found {count}, which takes {memory.size(count * block_bytes)}"
            f", but there are {memory.size(available)} (the device has {budget}); lower it to at "
            f"most {available // block_bytes}" + memory.virtual_advice()
        )


def _local_directory(model: ModelConfig, download_dir: str | None) -> Path | None:
    """Returns where the checkpoint lies: the directory given, or where the Hub's files are kept."""
    if (given := Path(model.model)).is_dir():
        return given
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(
            snapshot_download(
                model.model,
                revision=model.revision,
                cache_dir=download_dir,
                local_files_only=True,
            )
        )
    except (HFValidationError, HfHubHTTPError, LocalEntryNotFoundError):
        return None


def _checkpoint_bytes(directory: Path, itemsize: int) -> int | None:
    """Counts the elements of a local checkpoint's safetensors by their headers."""
    files = [f for f in directory.glob("*.safetensors") if not f.name.startswith("consolidated")]
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


def _has_windows(model: ModelConfig) -> bool:
    return model.get_sliding_window() is not None


def _token_bytes(config: VllmConfig) -> int:
    """Returns the cache of one token in all layers."""
    model = config.model_config
    layers = model.get_num_layers(config.parallel_config)
    kv_heads = model.get_num_kv_heads(config.parallel_config)
    dtype = _CACHE_DTYPES.get(config.cache_config.cache_dtype, model.dtype)
    return 2 * layers * kv_heads * model.get_head_size() * dtype.itemsize
