"""Registers a JAX function as a torch op, through torch_tpu's experimental `jax_op`."""

import warnings
from collections.abc import Callable
from typing import Any

from torch_tpu._internal.pallas import pallas


def jax_op(name: str, function: Callable[..., Any], **options: Any) -> Any:
    """Returns the op; see `torch_tpu._internal.pallas.pallas.jax_op`.

    That it is experimental is known: torch-tpu is pinned, and tests hold every op to its values.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*jax_op is experimental")
        return pallas.jax_op(name, function, **options)
