"""Puts a whole Hugging Face model directory together."""

from collections.abc import Sequence
from pathlib import Path

from demo.conversion.config import write_config
from demo.conversion.family import family_of
from demo.conversion.source import open_source
from demo.conversion.tokenizer import write_tokenizer
from demo.conversion.weight import write_weights


def write_model_directory(parts: Sequence[Path], directory: Path) -> None:
    """Converts a GGUF file, given as its parts in order, into files in ``directory``.

    Raises:
        DemoError: The file holds an architecture, tensor or tokenizer that is not known.
    """
    with open_source(parts) as source:
        family = family_of(source)
        write_config(source, family, directory)
        write_tokenizer(source, directory)
        write_weights(source, family, directory / "model.safetensors")
