"""torch op `torchtpu::sample_tokens`: the next token of every row, drawn on the device."""

import jax
import jax.numpy as jnp
import torch
from jax import lax
from torchtpu_kernels.ops import sampling as kernel

from vllm_torchtpu.ops.jax_op import jax_op

# Columns of the packed parameters: one transfer to the device instead of six.
TEMPERATURE, TOP_K, TOP_P, MIN_P, SEED_LOW, SEED_HIGH, COUNTER, NUM_COLUMNS = range(8)


def _sample_tokens(logits: jax.Array, packed: jax.Array) -> jax.Array:
    def real(column: int) -> jax.Array:
        return lax.bitcast_convert_type(packed[:, column], jnp.float32)

    return kernel.sample_tokens(
        logits,
        real(TEMPERATURE),
        packed[:, TOP_K],
        real(TOP_P),
        real(MIN_P),
        lax.bitcast_convert_type(packed[:, SEED_LOW : SEED_HIGH + 1], jnp.uint32),
        packed[:, COUNTER],
    )


_op = jax_op("torchtpu::sample_tokens", _sample_tokens)


@_op.register_fake
def _(logits, packed):
    return torch.empty(logits.shape[0], dtype=torch.int32, device=logits.device)


def sample_tokens(logits: torch.Tensor, packed: torch.Tensor) -> torch.Tensor:
    """Draws int32 token ids [rows] from logits [rows, vocab] by packed int32 [rows, NUM_COLUMNS].

    Columns hold float32 values by their bits; semantics are those of
    `torchtpu_kernels.ops.sampling`.
    """
    return _op(logits, packed)
