"""How many bytes the largest bucket's activations take, by arithmetic on the model's sizes."""

from vllm.config import VllmConfig

_FLOAT32_BYTES = 4


def activation_bytes(config: VllmConfig) -> int:
    """Returns an upper estimate of what one step needs beside weights and cache.

    XLA frees a buffer after its last use, so the largest layer counts, not their sum: the residual
    stream twice, q, k, v and attention output, both halves of the MLP and their product, in the
    model's dtype; and the logits with the sampler's noise and scratch in float32.
    """
    model, scheduler = config.model_config, config.scheduler_config
    text = model.hf_text_config
    hidden = model.get_hidden_size()
    heads = model.get_num_attention_heads(config.parallel_config)
    kv_heads = model.get_num_kv_heads(config.parallel_config)
    intermediate = getattr(text, "intermediate_size", None) or 4 * hidden
    per_token = 2 * hidden + 2 * (heads + kv_heads) * model.get_head_size() + 3 * intermediate
    tokens = scheduler.max_num_batched_tokens * per_token * model.dtype.itemsize
    logits = scheduler.max_num_seqs * model.get_vocab_size() * _FLOAT32_BYTES * 4
    return tokens + logits
