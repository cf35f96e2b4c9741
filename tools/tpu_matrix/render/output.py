"""Generated files on disk: written when they differ, or compared for drift."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from tpu_matrix.errors import MatrixError


def write(files: Mapping[Path, str], left_over: Iterable[Path] = ()) -> list[Path]:
    """Writes the files that differ and deletes left-overs; returns the paths it changed."""
    changed = []
    try:
        for path, content in files.items():
            if _read(path) != content:
                path.parent.mkdir(parents=True, exist_ok=True)
                # A reader, or an interruption, never meets half a file.
                partial = path.with_name(f".{path.name}.{os.getpid()}")
                partial.write_text(content, encoding="utf-8")
                partial.replace(path)
                changed.append(path)
        for path in left_over:
            path.unlink()
            changed.append(path)
    except OSError as error:
        found = f"a generated file cannot be written ({error.strerror or error})"
        raise MatrixError(error.filename or "output", found, "make it writable") from None
    return changed


def drift(files: Mapping[Path, str], left_over: Iterable[Path] = ()) -> list[tuple[Path, str]]:
    """Returns the paths that differ from what would be generated, and how."""
    found = []
    for path, content in files.items():
        present = _read(path)
        if present is None:
            found.append((path, "the generated file is missing"))
        elif present != content:
            found.append((path, "the file differs from what its data gives"))
    return found + [(path, "nothing generates this file any more") for path in left_over]


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return None
