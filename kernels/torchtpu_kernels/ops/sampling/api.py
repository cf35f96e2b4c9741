"""The public function of the sampling operation: it validates, then samples."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt32

from torchtpu_kernels.core.check import Problems
from torchtpu_kernels.ops.sampling.reference import sample_tokens_reference


def sample_tokens(
    logits: Float[Array, "requests vocab"],
    temperature: Float[Array, " requests"],
    top_k: Int[Array, " requests"],
    top_p: Float[Array, " requests"],
    min_p: Float[Array, " requests"],
    seeds: UInt32[Array, "requests 2"],
    counters: Int[Array, " requests"],
) -> Int[Array, " requests"]:
    """Samples one token a row: greedy where the temperature is 0, else by Gumbel's trick.

    The filters apply in vLLM's order: temperature, min_p, top_k, then top_p on what is left.
    Tokens with equal logits are kept or dropped together. The noise is float32 and a pure
    function of (seed, counter, token), so a request's draw does not depend on its neighbours.

    Args:
        logits: Any float dtype; -inf excludes a token.
        temperature: float32; 0 means greedy.
        top_k: int32; 0 keeps all tokens.
        top_p: float32 in (0, 1]; 1 keeps all tokens.
        min_p: float32 in [0, 1]; keeps tokens with at least this share of the top probability.
        seeds: The request's own 64 bits.
        counters: int32; how many tokens the request has drawn before.

    Returns:
        int32 token ids. All arithmetic is float32.

    Raises:
        ShapeError: Shapes or dtypes do not fit together; all problems in one sentence.
    """
    problems = Problems("sample_tokens")
    rows = logits.shape[0]
    for name, array, shape, dtype in (
        ("temperature", temperature, (rows,), jnp.float32),
        ("top_k", top_k, (rows,), jnp.int32),
        ("top_p", top_p, (rows,), jnp.float32),
        ("min_p", min_p, (rows,), jnp.float32),
        ("seeds", seeds, (rows, 2), jnp.uint32),
        ("counters", counters, (rows,), jnp.int32),
    ):
        problems.require(
            array.shape == shape and array.dtype == dtype,
            f"{name} is {array.dtype}{list(array.shape)}; give {jnp.dtype(dtype)}{list(shape)}",
        )
    problems.raise_if_any()
    return sample_tokens_reference(logits, temperature, top_k, top_p, min_p, seeds, counters)
