"""Builds the virtual TPU's library from the C sources beside this file, with the system's C compiler.

`python -m vllm_torchtpu.virtual.build` builds it ahead; the first use builds it too.
"""

import hashlib
import importlib.metadata
import importlib.util
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from vllm_torchtpu import envs
from vllm_torchtpu.errors import TorchTpuError, exit_with_sentence

CPU_PLUGIN_DISTRIBUTION = "lammps-jax-pjrt-cpu"
CPU_PLUGIN_PACKAGE = "lammps_jax_pjrt_cpu"
CPU_PLUGIN_FILE = "pjrt_c_api_cpu_plugin.so"
SOURCES = tuple(Path(__file__).with_name(name) for name in ("pjrt.h", "shim.c", "serialize.c"))
FLAGS = ("-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden")
LIBRARIES = ("-ldl", "-lpthread")


def cpu_plugin() -> Path:
    """The path of XLA's CPU PJRT plugin.

    Raises:
        TorchTpuError: if the package that carries it is missing or incomplete.
    """
    spec = importlib.util.find_spec(CPU_PLUGIN_PACKAGE)
    path = Path(spec.origin).with_name(CPU_PLUGIN_FILE) if spec and spec.origin else None
    if path is None or not path.is_file():
        found = f"{path} is missing" if path else f"{CPU_PLUGIN_DISTRIBUTION} is not installed"
        raise TorchTpuError(
            f"virtual TPU: {found}; install this plugin's dependencies again "
            f"(pip install --force-reinstall {CPU_PLUGIN_DISTRIBUTION})"
        )
    return path


def compiler() -> list[str]:
    """The C compiler's command: `CC` if set, else the first of cc, gcc, clang on the path."""
    chosen = envs.current("CC")
    candidates = [shlex.split(chosen)] if chosen else [["cc"], ["gcc"], ["clang"]]
    for command in candidates:
        if shutil.which(command[0]):
            return command
    names = ", ".join(command[0] for command in candidates)
    raise TorchTpuError(
        f"virtual TPU: no C compiler found ({names}); install one (apt-get install gcc) or name it in CC"
    )


def source_hash() -> str:
    """A digest of the C sources, in hexadecimal."""
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in SOURCES)).hexdigest()


def library_path(plugin: Path) -> Path:
    """Where the library for these sources and flags and this plugin lies, built or not."""
    key = hashlib.sha256(source_hash().encode())
    version = importlib.metadata.version(CPU_PLUGIN_DISTRIBUTION)
    key.update("\0".join((*FLAGS, *LIBRARIES, str(plugin), version)).encode())
    return envs.load().cache_dir / f"libvtpu-{key.hexdigest()[:16]}.so"


def build() -> Path:
    """Returns the library's path, having compiled it unless it is there already.

    The file appears by an atomic rename, so processes that build at once do not see a partial one.

    Raises:
        TorchTpuError: no compiler, a failing compiler, an unwritable directory, or no CPU plugin.
    """
    plugin = cpu_plugin()
    library = library_path(plugin)
    if library.is_file():
        return library
    command = compiler()
    try:
        library.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".build-", dir=library.parent) as scratch:
            built = Path(scratch) / library.name
            _compile(
                [
                    *command,
                    *FLAGS,
                    f'-DTORCHTPU_CPU_PLUGIN="{plugin}"',
                    *(str(path) for path in SOURCES if path.suffix == ".c"),
                    "-o",
                    str(built),
                    *LIBRARIES,
                ]
            )
            os.replace(built, library)
    except OSError as error:
        raise TorchTpuError(
            f"virtual TPU: cannot write {library.parent} ({error.strerror}); "
            "make it writable or set TORCHTPU_CACHE_DIR to a directory that is"
        ) from None
    return library


def _compile(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        first = next(
            (line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()
        )
        raise TorchTpuError(
            f"virtual TPU: {command[0]} failed with status {done.returncode} ({first}); "
            "mend the compiler or name another one in CC"
        )


if __name__ == "__main__":
    with exit_with_sentence():
        print(build())
