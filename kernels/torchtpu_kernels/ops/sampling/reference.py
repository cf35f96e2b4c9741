"""Sampling in plain jax.numpy, for XLA: no sort, and nothing as large as the noise is skipped.

top_k and top_p look for a threshold by bisection over the 32 bits of an order-preserving integer
image of the logits, which is exact and reads the row 32 times where a sort would move it.
"""

import jax
import jax.numpy as jnp
from jax import lax


def sample_tokens_reference(
    logits: jax.Array,
    temperature: jax.Array,
    top_k: jax.Array,
    top_p: jax.Array,
    min_p: jax.Array,
    seeds: jax.Array,
    counters: jax.Array,
) -> jax.Array:
    """See `api.sample_tokens`; arguments are assumed valid."""
    logits = logits.astype(jnp.float32)
    is_greedy = temperature <= 0
    greedy = _argmax(logits)

    def draw() -> jax.Array:
        scaled = logits / jnp.where(is_greedy, 1.0, temperature)[:, None]
        scaled = _filter(scaled, top_k, top_p, min_p)
        noisy = scaled + _gumbel(seeds, counters, logits.shape[1])
        return jnp.where(is_greedy, greedy, _argmax(noisy))

    return lax.cond(jnp.all(is_greedy), lambda: greedy, draw)


def _argmax(x: jax.Array) -> jax.Array:
    """First index of the largest entry: two plain reductions, which XLA's CPU vectorises."""
    index = jnp.arange(x.shape[1], dtype=jnp.int32)
    is_largest = x == jnp.max(x, axis=-1, keepdims=True)
    return jnp.min(jnp.where(is_largest, index, x.shape[1] - 1), axis=-1)


def _filter(scaled: jax.Array, top_k: jax.Array, top_p: jax.Array, min_p: jax.Array) -> jax.Array:
    """Sets what min_p, top_k and top_p exclude to -inf."""
    largest = jnp.max(scaled, axis=-1, keepdims=True)
    scaled = jnp.where(scaled >= largest + jnp.log(min_p)[:, None], scaled, -jnp.inf)
    wants_top_k = (top_k > 0) & (top_k < scaled.shape[1])
    scaled = lax.cond(
        jnp.any(wants_top_k),
        lambda: _keep_until(
            scaled, jnp.ones_like(scaled), jnp.where(wants_top_k, top_k, scaled.shape[1])
        ),
        lambda: scaled,
    )
    wants_top_p = top_p < 1.0

    def keep_top_p() -> jax.Array:
        # A bound that no mass reaches keeps every token: sums of probabilities may miss 1.
        bound = jnp.where(wants_top_p, top_p, 2.0)
        return _keep_until(scaled, jax.nn.softmax(scaled, axis=-1), bound)

    return lax.cond(jnp.any(wants_top_p), keep_top_p, lambda: scaled)


def _keep_until(scaled: jax.Array, mass: jax.Array, bound: jax.Array) -> jax.Array:
    """Keeps the largest entries of each row until their mass reaches the row's bound."""
    image = _ordered_image(scaled)
    bound = bound.astype(jnp.float32)

    def try_bit(i: jax.Array, threshold: jax.Array) -> jax.Array:
        candidate = threshold | (jnp.uint32(1) << (31 - i).astype(jnp.uint32))
        reached = jnp.sum(jnp.where(image >= candidate[:, None], mass, 0.0), axis=-1)
        return jnp.where(reached >= bound, candidate, threshold)

    threshold = lax.fori_loop(0, 32, try_bit, jnp.zeros(scaled.shape[0], jnp.uint32))
    return jnp.where(image >= threshold[:, None], scaled, -jnp.inf)


def _ordered_image(x: jax.Array) -> jax.Array:
    """Maps float32 to uint32 so that the order stays; -0.0 and 0.0 become equal."""
    bits = lax.bitcast_convert_type(jnp.where(x == 0.0, 0.0, x), jnp.uint32)
    return jnp.where(bits >> 31 == 1, ~bits, bits | jnp.uint32(1 << 31))


def _gumbel(seeds: jax.Array, counters: jax.Array, vocab_size: int) -> jax.Array:
    """Returns float32 Gumbel noise by Threefry-2x32 (Salmon et al., 2011), a counter per token."""

    def row(seed: jax.Array, counter: jax.Array) -> jax.Array:
        key = jax.random.fold_in(jax.random.wrap_key_data(seed, impl="threefry2x32"), counter)
        return jax.random.gumbel(key, (vocab_size,), jnp.float32)

    return jax.vmap(row)(seeds, counters)
