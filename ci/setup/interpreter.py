"""Finds a Python that the pinned packages have wheels for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Iterator

SUPPORTED = ((3, 12), (3, 13))
NOT_FOUND = (
    "no Python 3.12 or 3.13 found (on PATH, among pyenv's versions or by uv); "
    "install one (for example: apt-get install python3.12, pyenv install 3.12 or uv python install 3.12) "
    "or name it: make setup PYTHON=/path/to/python3.12"
)
# Its own path too: of a virtual environment's Python only the base will do, since .venv itself may be rebuilt.
PROBE = (
    "import struct, sys; print(*sys.version_info[:2], sys.implementation.name, struct.calcsize('P'), "
    "getattr(sys, '_base_executable', '') or sys.executable)"
)


def find() -> str | None:
    """Returns the first suitable Python among the running one, PATH's and pyenv's, or None."""
    for candidate in dict.fromkeys(candidates()):
        python = base(candidate) if os.access(candidate, os.X_OK) else None
        if python:
            return python
    return None


def candidates() -> Iterator[str]:
    """Yields the paths to try, best first: 3.12 is what this project is tested with."""
    yield sys.executable
    folders = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for major, minor in SUPPORTED:
        for folder in folders:
            yield os.path.join(folder, f"python{major}.{minor}")
        for version in sorted(pyenv.glob(f"{major}.{minor}*"), reverse=True):
            yield str(version / "bin" / "python")
    for folder in folders:
        yield os.path.join(folder, "python3")


def base(python: str) -> str | None:
    """Returns the executable behind this command if it is a 64-bit CPython of a supported version, else None.

    It is run, not only looked at: pyenv puts commands on PATH that refuse to run.
    """
    try:
        answer = subprocess.run([python, "-c", PROBE], capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    *about, path = (
        answer.stdout.decode(errors="replace").strip().split(" ", 4)
        if answer.returncode == 0
        else [""]
    )
    return (
        path
        if about in [[str(major), str(minor), "cpython", "8"] for major, minor in SUPPORTED]
        else None
    )
