"""What an architecture calls its tensors, and what happens to their values on the way."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from demo.conversion import gemma3, llama
from demo.conversion.source import GgufSource
from demo.errors import DemoError

_BLOCK_TENSOR = re.compile(r"blk\.(?P<layer>\d+)\.(?P<part>\w+)\.(?P<leaf>weight|bias)")
_TOP_TENSORS = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}


@dataclass(frozen=True)
class Family:
    """One architecture's differences.

    Attributes:
        block_tensors: GGUF name to Hugging Face name, both inside one decoder layer.
        restore: Undoes what llama.cpp's exporter did to a tensor's values; gets the GGUF name.
        config: Builds the architecture's part of ``config.json``.
    """

    block_tensors: Mapping[str, str]
    restore: Callable[[str, np.ndarray, GgufSource], np.ndarray]
    config: Callable[[GgufSource], dict[str, Any]]

    def tensor_name(self, gguf_name: str) -> str | None:
        """Returns the Hugging Face name of a GGUF tensor, None for one it does not know."""
        if gguf_name in _TOP_TENSORS:
            return _TOP_TENSORS[gguf_name]
        match = _BLOCK_TENSOR.fullmatch(gguf_name)
        if match is None or match["part"] not in self.block_tensors:
            return None
        return f"model.layers.{match['layer']}.{self.block_tensors[match['part']]}.{match['leaf']}"


FAMILIES: Mapping[str, Family] = {
    "llama": Family(llama.BLOCK_TENSORS, llama.restore, llama.config),
    "gemma3": Family(gemma3.BLOCK_TENSORS, gemma3.restore, gemma3.config),
}


def family_of(source: GgufSource) -> Family:
    """Returns the family of the file's architecture.

    Raises:
        DemoError: The architecture is not one of FAMILIES, or the file uses what the family's
            conversion does not carry over; one sentence names everything that was found.
    """
    family = FAMILIES.get(source.architecture)
    if family is None:
        raise DemoError(
            f"{source.path}: architecture {source.architecture!r} cannot be converted; "
            f"use one of: {', '.join(FAMILIES)}"
        )
    # A scaled rope or an unknown tensor changes every logit: refuse instead of dropping it.
    found = [f"key {key}" for key in source.keys_under(f"{source.architecture}.rope.scaling.")]
    found += [f"tensor {n}" for n in source.tensor_names if family.tensor_name(n) is None]
    if found:
        raise DemoError(
            f"{source.path}: the {source.architecture} conversion does not know "
            f"{', '.join(found)}; use a checkpoint without them"
        )
    return family
