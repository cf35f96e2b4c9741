"""Reads a GGUF file: typed metadata and dequantised tensors."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize

from demo.errors import DemoError

_COPY_BYTES = 1 << 20


class GgufSource:
    """The metadata and the tensors of one GGUF file.

    Tensors come out as float32 in Hugging Face's axis order (rows are output features), which
    is the reverse of the order that the GGUF header lists.
    """

    def __init__(self, path: Path) -> None:
        """Maps the file at ``path`` into memory and reads its header."""
        self.path = path
        self._reader = GGUFReader(path)
        self.architecture: str = self.required("general.architecture")

    def optional(self, key: str, default: Any = None) -> Any:
        """Returns the metadata value at ``key``, or ``default`` if the file has none."""
        field = self._reader.fields.get(key)
        return default if field is None else field.contents()

    def required(self, key: str) -> Any:
        """Returns the metadata value at ``key``.

        Raises:
            DemoError: The file has no such key.
        """
        value = self.optional(key)
        if value is None:
            raise DemoError(f"{self.path}: no metadata key {key}; use a complete GGUF file")
        return value

    def hyperparameter(self, name: str, default: Any = None) -> Any:
        """Returns ``<architecture>.<name>``; without a default it must be there."""
        key = f"{self.architecture}.{name}"
        return self.required(key) if default is None else self.optional(key, default)

    def keys_under(self, prefix: str) -> list[str]:
        """Returns the metadata keys that start with ``prefix``."""
        return [key for key in self._reader.fields if key.startswith(prefix)]

    @property
    def tensor_names(self) -> list[str]:
        """The names of all tensors, in file order."""
        return [tensor.name for tensor in self._reader.tensors]

    def tensors(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yields each tensor's name and its dequantised float32 values."""
        for tensor in self._reader.tensors:
            yield tensor.name, dequantize(tensor.data, tensor.tensor_type)


@contextlib.contextmanager
def open_source(parts: Sequence[Path]) -> Iterator[GgufSource]:
    """Opens one GGUF file, or the parts of a split one joined in the order given.

    Packages split a file that is larger than their index allows; the joined copy lives in a
    temporary directory for as long as the context does.
    """
    if len(parts) == 1:
        yield GgufSource(parts[0])
        return
    with tempfile.TemporaryDirectory(prefix="gguf-") as directory:
        joined = Path(directory) / "model.gguf"
        with joined.open("wb") as target:
            for part in parts:
                with part.open("rb") as piece:
                    shutil.copyfileobj(piece, target, _COPY_BYTES)
        yield GgufSource(joined)
