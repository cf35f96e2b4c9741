"""Fixtures that hand out model directories; tests/conftest.py names this module as a plugin."""

import hashlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tiny_model(pytestconfig: pytest.Config) -> Callable[[str], Path]:
    """A function from a name of TINY_MODELS to its directory, written once per checkout.

    The directories are shared by all xdist workers and later runs, so tests only read them.
    """
    root = pytestconfig.cache.mkdir("models")

    def directory_of(name: str) -> Path:
        target = root / f"{name}-{_key()}"
        if not target.is_dir():
            _write_atomically(name, target)
        return target

    return directory_of


@pytest.fixture(scope="session")
def smollm2_directory() -> Path:
    """SmolLM2-135M-Instruct as the demo converts and keeps it."""
    from vllm_torchtpu import envs

    from demo.checkpoint import SMOLLM2
    from demo.conversion.cache import converted

    return converted(SMOLLM2, envs.load().cache_dir)


def _key() -> str:
    import torch
    import transformers

    digest = hashlib.sha256(f"{torch.__version__} {transformers.__version__}".encode())
    for source in ("tiny.py", "vocabulary.py"):
        digest.update(Path(__file__).with_name(source).read_bytes())
    return digest.hexdigest()[:16]


def _write_atomically(name: str, target: Path) -> None:
    from tests.models.tiny import write_tiny_model

    work = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    write_tiny_model(name, work)
    try:
        work.rename(target)
    except OSError:
        # Another worker was faster; its files are the same.
        if not target.is_dir():
            raise
        shutil.rmtree(work)
