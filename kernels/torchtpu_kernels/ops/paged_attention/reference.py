"""Paged attention in plain jax.numpy: what XLA runs where no Pallas kernel applies.

A flash-style loop over blocks of keys whose trip count is data, so one compiled graph serves every
context length and reads only the pages that hold tokens. Small batches run all tokens side by side;
larger ones take tiles of one request's queries in turn, which skips what a tile cannot see.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

# Measured on two CPU cores: below this, one gather for all tokens beats a loop over tiles.
_MAX_SIDE_BY_SIDE_TOKENS = 32
_TILE_TOKENS = 64
_BLOCK_TOKENS = 128
_NEGATIVE = -1e30


class _Options(NamedTuple):
    scale: float
    sliding_window: int | None
    soft_cap: float | None


class _Tiles(NamedTuple):
    """Query tiles of equal size, each inside one request.

    Attributes:
        q: [tiles, kv_heads, rows, head_dim] float32, rows = group * tile tokens, already scaled.
        positions: [tiles, tile tokens] int32 position of each query; -1 for padding.
        kv_lens: [tiles] int32 tokens in the cache of the tile's request.
        pages: [tiles, max_pages] int32 page table rows, padded to whole blocks.
    """

    q: jax.Array
    positions: jax.Array
    kv_lens: jax.Array
    pages: jax.Array


def paged_attention_reference(
    q: jax.Array,
    k: jax.Array,
    v: jax.Array,
    kv_cache: jax.Array,
    page_table: jax.Array,
    cu_q_lens: jax.Array,
    kv_lens: jax.Array,
    *,
    scale: float,
    sliding_window: int | None,
    soft_cap: float | None,
) -> tuple[jax.Array, jax.Array]:
    """See `api.paged_attention`; arguments are assumed valid."""
    options = _Options(scale, sliding_window, soft_cap)
    page_size = kv_cache.shape[-1]
    owner, positions = _token_owners(q.shape[0], cu_q_lens, kv_lens)
    kv_cache = _write(k, v, kv_cache, page_table[owner], positions)
    pages = _pad_to_whole_blocks(page_table, page_size)
    if q.shape[0] <= _MAX_SIDE_BY_SIDE_TOKENS:
        tiles = _Tiles(
            _rows(q[:, None], kv_cache.shape[1], scale),
            positions[:, None],
            positions + 1,
            pages[owner],
        )
        out = _tokens(_attend(tiles, kv_cache, options), 1)[:, 0]
    else:
        out = _attend_in_turn(q, kv_cache, pages, cu_q_lens, kv_lens, options)
    out = jnp.where(positions[:, None, None] >= 0, out, 0.0)
    return out.astype(q.dtype), kv_cache


def _token_owners(
    num_tokens: int, cu_q_lens: jax.Array, kv_lens: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Returns each token's request and its position there; padding has position -1."""
    token = jnp.arange(num_tokens, dtype=jnp.int32)
    # Counting the requests that end at or before a token steps over zero-length ones.
    owner = jnp.sum(token[:, None] >= cu_q_lens[None, 1:], axis=1, dtype=jnp.int32)
    is_real = owner < kv_lens.shape[0]
    owner = jnp.minimum(owner, kv_lens.shape[0] - 1)
    position = kv_lens[owner] - cu_q_lens[owner + 1] + token
    return owner, jnp.where(is_real, position, -1)


def _write(
    k: jax.Array, v: jax.Array, kv_cache: jax.Array, token_pages: jax.Array, positions: jax.Array
) -> jax.Array:
    """Scatters the new keys and values; padding aims past the pool and is dropped."""
    num_pages, page_size = kv_cache.shape[0], kv_cache.shape[-1]
    index = jnp.maximum(positions, 0) // page_size
    page = jnp.take_along_axis(token_pages, index[:, None], axis=1)[:, 0]
    page = jnp.where(positions >= 0, page, num_pages)
    new = jnp.stack([k, v], axis=2).astype(kv_cache.dtype)
    return kv_cache.at[page, :, :, :, jnp.maximum(positions, 0) % page_size].set(new, mode="drop")


def _pages_per_block(page_size: int) -> int:
    return max(1, _BLOCK_TOKENS // page_size)


def _pad_to_whole_blocks(page_table: jax.Array, page_size: int) -> jax.Array:
    return jnp.pad(page_table, ((0, 0), (0, -page_table.shape[1] % _pages_per_block(page_size))))


def _rows(q: jax.Array, kv_heads: int, scale: float) -> jax.Array:
    """[tiles, tokens, heads, head_dim] -> scaled float32 [tiles, kv_heads, group*tokens, head_dim]."""
    tiles, tokens, _heads, head_dim = q.shape
    grouped = (q.astype(jnp.float32) * scale).reshape(tiles, tokens, kv_heads, -1, head_dim)
    return grouped.transpose(0, 2, 3, 1, 4).reshape(tiles, kv_heads, -1, head_dim)


def _tokens(rows: jax.Array, tokens: int) -> jax.Array:
    """Inverse of the layout of `_rows`."""
    tiles, kv_heads, _, head_dim = rows.shape
    grouped = rows.reshape(tiles, kv_heads, -1, tokens, head_dim)
    return grouped.transpose(0, 3, 1, 2, 4).reshape(tiles, tokens, -1, head_dim)


def _attend_in_turn(
    q: jax.Array,
    kv_cache: jax.Array,
    pages: jax.Array,
    cu_q_lens: jax.Array,
    kv_lens: jax.Array,
    options: _Options,
) -> jax.Array:
    """Runs one tile after the other, in token order."""
    tile = min(_TILE_TOKENS, q.shape[0])
    q_lens = cu_q_lens[1:] - cu_q_lens[:-1]
    tile_ends = jnp.cumsum((q_lens + tile - 1) // tile)
    padded_q = jnp.pad(q, ((0, tile), (0, 0), (0, 0)))
    row = jnp.arange(tile, dtype=jnp.int32)

    def run_tile(i: jax.Array, out: jax.Array) -> jax.Array:
        owner = jnp.sum(i >= tile_ends, dtype=jnp.int32)
        first = tile_ends[owner] - (q_lens[owner] + tile - 1) // tile
        start = cu_q_lens[owner] + (i - first) * tile
        position = kv_lens[owner] - cu_q_lens[owner + 1] + start + row
        position = jnp.where(start + row < cu_q_lens[owner + 1], position, -1)
        tiles = _Tiles(
            _rows(
                lax.dynamic_slice_in_dim(padded_q, start, tile)[None],
                kv_cache.shape[1],
                options.scale,
            ),
            position[None],
            kv_lens[owner][None],
            pages[owner][None],
        )
        # Rows past the request's end belong to the next tile, which overwrites them.
        done = _tokens(_attend(tiles, kv_cache, options), tile)[0]
        return lax.dynamic_update_slice_in_dim(out, done, start, axis=0)

    out = jnp.zeros(padded_q.shape, jnp.float32)
    return lax.fori_loop(0, tile_ends[-1], run_tile, out)[: q.shape[0]]


def _attend(tiles: _Tiles, kv_cache: jax.Array, options: _Options) -> jax.Array:
    """Attends every tile to its visible keys; returns float32 in the shape of `tiles.q`."""
    block = _pages_per_block(kv_cache.shape[-1]) * kv_cache.shape[-1]
    num_tiles, kv_heads, rows, _ = tiles.q.shape
    group = rows // tiles.positions.shape[1]
    positions = jnp.tile(tiles.positions, (1, group))[:, None, :, None]
    first_seen = _first_seen(tiles.positions, options.sliding_window)

    def run_block(i: jax.Array, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        key_positions = i * block + jnp.arange(block, dtype=jnp.int32)
        # Slots outside these bounds may hold anything, NaN too, and 0 * NaN is NaN.
        owned = (key_positions >= first_seen[:, None]) & (key_positions < tiles.kv_lens[:, None])
        keys, values = _load_block(kv_cache, tiles.pages, i, owned)
        visible = key_positions <= positions
        if options.sliding_window is not None:
            visible &= key_positions > positions - options.sliding_window
        return _accumulate(state, tiles.q, keys, values, visible, options.soft_cap)

    state = (
        jnp.full((num_tiles, kv_heads, rows, 1), _NEGATIVE, jnp.float32),
        jnp.zeros((num_tiles, kv_heads, rows, 1), jnp.float32),
        jnp.zeros(tiles.q.shape, jnp.float32),
    )
    first = jnp.min(jnp.where(tiles.kv_lens > 0, first_seen, jnp.iinfo(jnp.int32).max)) // block
    last = (jnp.max(tiles.positions) + block) // block
    _, total, acc = lax.fori_loop(jnp.minimum(first, last), last, run_block, state)
    return acc / jnp.where(total > 0, total, 1.0)


def _first_seen(positions: jax.Array, sliding_window: int | None) -> jax.Array:
    """Returns [tiles] the first key position that any query of the tile sees."""
    if sliding_window is None:
        return jnp.zeros(positions.shape[:1], jnp.int32)
    lowest = jnp.min(jnp.where(positions >= 0, positions, jnp.iinfo(jnp.int32).max), axis=1)
    return jnp.maximum(lowest - sliding_window + 1, 0)


def _load_block(
    kv_cache: jax.Array, pages: jax.Array, block: jax.Array, owned: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Gathers one block of keys and values, float32 [tiles, kv_heads, head_dim, block tokens]."""
    _, kv_heads, _, head_dim, page_size = kv_cache.shape
    count = _pages_per_block(page_size)
    ids = lax.dynamic_slice_in_dim(pages, block * count, count, axis=1)
    if count == 1:
        kv = kv_cache[ids[:, 0]]
    else:
        kv = kv_cache[ids].transpose(0, 2, 3, 4, 1, 5)
        kv = kv.reshape(ids.shape[0], kv_heads, 2, head_dim, count * page_size)
    kv = jnp.where(owned[:, None, None, None], kv.astype(jnp.float32), 0.0)
    return kv[:, :, 0], kv[:, :, 1]


def _accumulate(
    state: tuple[jax.Array, ...],
    q: jax.Array,
    keys: jax.Array,
    values: jax.Array,
    visible: jax.Array,
    soft_cap: float | None,
) -> tuple[jax.Array, ...]:
    """One step of the running softmax (Milakov & Gimelshein, 2018)."""
    largest, total, acc = state
    logits = jnp.einsum("nhrd,nhdt->nhrt", q, keys, precision=lax.Precision.HIGHEST)
    if soft_cap is not None:
        logits = soft_cap * jnp.tanh(logits / soft_cap)
    logits = jnp.where(visible, logits, _NEGATIVE)
    new_largest = jnp.maximum(largest, jnp.max(logits, axis=-1, keepdims=True))
    weights = jnp.where(visible, jnp.exp(logits - new_largest), 0.0)
    rescale = jnp.exp(largest - new_largest)
    weighted = jnp.einsum("nhrt,nhdt->nhrd", weights, values, precision=lax.Precision.HIGHEST)
    return (
        new_largest,
        total * rescale + jnp.sum(weights, axis=-1, keepdims=True),
        acc * rescale + weighted,
    )
