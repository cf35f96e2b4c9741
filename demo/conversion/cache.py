"""Keeps converted models: one directory per file digest and converter, complete or absent."""

import contextlib
import errno
import fcntl
import hashlib
import importlib.metadata
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from demo.checkpoint import PackagedCheckpoint, locate
from demo.conversion.directory import write_model_directory
from demo.errors import DemoError

_KEY_CHARACTERS = 16


def converted(checkpoint: PackagedCheckpoint, cache: Path) -> Path:
    """Returns the checkpoint as a Hugging Face directory under ``cache``, converting it once.

    A directory under its final name is always complete: it is written under another name,
    then renamed. Two processes that want the same one wait for each other.

    Raises:
        DemoError: The package or its file is missing or wrong, or there is no space left.
    """
    path = locate(checkpoint)
    models = cache / "models"
    target = models / f"{checkpoint.name}-{conversion_key(checkpoint)}"
    if target.is_dir():
        return target
    try:
        models.mkdir(parents=True, exist_ok=True)
        with _locked(models / f"{target.name}.lock"):
            if not target.is_dir():
                _convert(path, target)
    except OSError as error:
        raise _storage_error(models, error) from error
    return target


def conversion_key(checkpoint: PackagedCheckpoint) -> str:
    """Returns a digest of everything that decides the converted files."""
    digest = hashlib.sha256(checkpoint.sha256.encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    for library in ("gguf", "safetensors", "tokenizers"):
        digest.update(f"{library}={importlib.metadata.version(library)}".encode())
    return digest.hexdigest()[:_KEY_CHARACTERS]


def _convert(path: Path, target: Path) -> None:
    unfinished = f".{target.name}."
    for abandoned in target.parent.glob(f"{unfinished}*"):
        shutil.rmtree(abandoned)  # a killed conversion; the lock says that none is running
    work = Path(tempfile.mkdtemp(prefix=unfinished, dir=target.parent))
    try:
        write_model_directory([path], work)
        work.chmod(0o755)  # mkdtemp makes it private; a cache may be shared
        work.rename(target)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _storage_error(models: Path, error: OSError) -> DemoError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DemoError(f"{models}: no space left for the converted model; free about 0.5 GB")
    return DemoError(
        f"{error.filename or models}: {error.strerror or error}; make it writable, or set "
        f"TORCHTPU_CACHE_DIR to a directory that is"
    )
