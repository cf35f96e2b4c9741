"""Writes the weights: dequantised, restored, renamed, in one safetensors file."""

from pathlib import Path

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

from demo.conversion.family import Family
from demo.conversion.source import GgufSource

STORED_DTYPE = np.dtype(ml_dtypes.bfloat16)


def write_weights(source: GgufSource, family: Family, path: Path) -> None:
    """Writes all tensors of ``source`` to ``path`` under their Hugging Face names.

    They are stored in bfloat16, the dtype that both families are published in. That rounds the
    dequantised values once more; who compares two engines gives both of them these same files.
    """
    weights = {}
    for name, values in source.tensors():
        restored = family.restore(name, values, source)
        weights[_known_name(family, name)] = np.ascontiguousarray(restored.astype(STORED_DTYPE))
    save_file(weights, path, metadata={"format": "pt"})
    path.chmod(0o644)  # safetensors makes it private; a cache may be shared


def _known_name(family: Family, gguf_name: str) -> str:
    name = family.tensor_name(gguf_name)
    assert name is not None, f"{gguf_name}: family_of() admits only known tensors"
    return name
