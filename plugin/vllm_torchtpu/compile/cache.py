"""Keeps compiled executables between starts, under VLLM_XLA_CACHE_PATH.

torch_tpu has two stores beyond the process: tier 3, files under one root, and tier 2, the same files
in shared memory under one name. Both are keyed by what the compiler sees. Their files are machine
code that is loaded without a check, so only a directory that nobody else can write is used.

torch's own cache of compiled graphs (AOTAutograd's) is switched off: it is a pickle under /tmp, and
its key leaves out the JAX function behind a custom operation, so that it would answer with the
executable of a kernel's earlier version.
"""

import hashlib
import logging
import os
import secrets
import stat
from importlib.metadata import version
from pathlib import Path

from vllm_torchtpu import envs
from vllm_torchtpu.errors import TorchTpuError, raise_all
from vllm_torchtpu.virtual import build

logger = logging.getLogger("vllm.torchtpu.compile")

VARIABLE = "VLLM_XLA_CACHE_PATH"
_ROOT = "TORCH_TPU_TIER3_COMPILATION_CACHE_ROOT"
_SHARED_NAME = "TORCH_TPU_TIER2_COMPILATION_CACHE"
_BACKUP = "TORCH_TPU_INTERNAL_TIER3_COMPILATION_CACHE_LOCAL_BACKUP_TASK"
_SHARED_MEMORY = Path("/dev/shm/torch_tpu_cache")  # torch_tpu's, fixed
_TOKEN = "shared-memory-name"
_REMEDY = f"set {VARIABLE} to a directory of your own, or to nothing for no cache"


def configure(kind: str) -> Path | None:
    """Names the store for a device kind to torch_tpu, here and in children; None if there is none.

    torch_tpu reads the names at its first compilation. Names that are set already, by a parent
    process or by the user, stand.

    Raises:
        TorchTpuError: the directory cannot be made or written, or others can write it.
    """
    envs.export(TORCHINDUCTOR_AUTOGRAD_CACHE="0")
    if chosen := envs.current(_ROOT):
        return Path(chosen)
    top = envs.load().xla_cache_path
    if top is None:
        return None
    directory = top / kind / _versions(kind)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        raise_all([problem for path in (top, top / kind, directory) for problem in _problems(path)])
        name = _shared_memory_name(directory)
    except OSError as error:
        raise TorchTpuError(
            f"{VARIABLE}: cannot write {directory} ({error.strerror}); {_REMEDY}"
        ) from None
    if not _shared_memory_is_usable():
        logger.warning(
            "No executables are kept between starts: %s is not yours alone to write", _SHARED_MEMORY
        )
        return None
    # torch_tpu would compile beside each read, in case the read is slow: here it only takes the cores.
    envs.export(**{_ROOT: str(directory), _SHARED_NAME: name, _BACKUP: "0"})
    return directory


def forget_pickles() -> None:
    """Switches AOTAutograd's cache off in a process that has imported torch before `configure`."""
    from torch._functorch import config

    config.enable_autograd_cache = False


def _versions(kind: str) -> str:
    """The directory's name: everything an executable depends on beside the program itself."""
    packages = {"torch": "torch", "torch_tpu": "torch-tpu", "jax": "jax"}
    packages |= {"libtpu": "libtpu"} if kind == "tpu" else {"cpu": build.CPU_PLUGIN_DISTRIBUTION}
    parts = [f"{short}-{version(name)}" for short, name in packages.items()]
    if kind == "virtual":
        parts.append(f"shim-{build.source_hash()[:8]}")
    if flags := envs.current("XLA_FLAGS"):
        parts.append(f"flags-{hashlib.sha256(flags.encode()).hexdigest()[:8]}")
    return "_".join(parts)


def _problems(path: Path) -> list[str]:
    found = path.stat()
    if found.st_uid != os.geteuid():
        return [
            f"{VARIABLE}: {path} belongs to user {found.st_uid}, not to you ({os.geteuid()}); {_REMEDY}"
        ]
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return [
            f"{VARIABLE}: others can write {path}, which holds machine code; run chmod go-w {path}"
        ]
    return []


def _shared_memory_is_usable() -> bool:
    """Whether torch_tpu can make its folder there, without which it aborts the process."""
    if _SHARED_MEMORY.exists():
        return not _problems(_SHARED_MEMORY)
    return os.access(_SHARED_MEMORY.parent, os.W_OK | os.X_OK)


def _shared_memory_name(directory: Path) -> str:
    """The name of this directory's part of shared memory: random, and forgotten with the directory.

    With a fixed name, executables in shared memory would outlive a deleted directory, and torch_tpu
    would never write them to the new one.
    """
    token = directory / _TOKEN
    scratch = directory / f".{_TOKEN}-{secrets.token_hex(8)}"
    scratch.write_text(f"vllm-torchtpu-{secrets.token_hex(8)}")
    try:
        os.link(scratch, token)  # unlike a rename, does not replace another process's
    except FileExistsError:
        pass
    finally:
        scratch.unlink()
    return token.read_text()
