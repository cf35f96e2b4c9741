"""Paged attention once more, in NumPy float64 and token by token: the oracle of the contract test."""

import numpy as np


def attend(queries, keys, values, *, first_position, scale, sliding_window, soft_cap):
    """Attends one request's queries [n, heads, d] to its keys and values [tokens, kv_heads, d]."""
    group = queries.shape[1] // keys.shape[1]
    out = np.zeros(queries.shape, np.float64)
    for row in range(queries.shape[0]):
        position = first_position + row
        first = 0 if sliding_window is None else max(0, position + 1 - sliding_window)
        for head in range(queries.shape[1]):
            seen = keys[first : position + 1, head // group]
            logits = scale * (seen @ queries[row, head])
            if soft_cap is not None:
                logits = soft_cap * np.tanh(logits / soft_cap)
            weights = np.exp(logits - logits.max())
            weights /= weights.sum()
            out[row, head] = weights @ values[first : position + 1, head // group]
    return out
