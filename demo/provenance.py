"""What a record says about its origin: the commit and the installed versions."""

import importlib.metadata
import subprocess
from pathlib import Path

from tpu_matrix.evidence.record import UNKNOWN_COMMIT, Versions


def commit(root: Path) -> str:
    """Returns the checkout's commit, with ``-dirty`` where a file differs from it."""
    head = _git(root, "rev-parse", "--verify", "HEAD")
    changes = _git(root, "status", "--porcelain")
    if head is None or changes is None:
        return UNKNOWN_COMMIT
    return f"{head}-dirty" if changes else head


def versions() -> Versions:
    """Returns the versions of the packages that decide how a model is served."""
    names = {name: name.replace("_", "-") for name in Versions.model_fields}
    return Versions(**{name: importlib.metadata.version(dist) for name, dist in names.items()})


def _git(root: Path, *arguments: str) -> str | None:
    """Returns git's output; None without git or outside a checkout."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
