"""Puts the virtual TPU in libtpu's place, early or late in a process.

Early, before torch_tpu is imported, naming the library in TPU_LIBRARY_PATH is enough, and libtpu is
never loaded. Late, after `import torch` has autoloaded torch_tpu and with it libtpu, torch_tpu holds
the address of libtpu's PJRT table already; the table is a writable static struct, so the virtual
TPU's entries are copied over it before the first use of the device.
"""

import contextlib
import ctypes
import sys
from pathlib import Path

from vllm_torchtpu import envs
from vllm_torchtpu.errors import TorchTpuError
from vllm_torchtpu.virtual import build

_TOO_LATE = (
    "virtual TPU: torch device 'tpu' was in use in this process before vLLM chose its device; "
    "import vllm before the device's first use, or use the device in a process of its own"
)
_REINSTALL = (
    "install the versions of torch-tpu, libtpu and lammps-jax-pjrt-cpu that vllm-torchtpu pins"
)

# Without it XLA's CPU converts bfloat16 matmuls to float32 first (benchmarks/linear.py).
_MATMUL_FLAG = "--xla_cpu_experimental_ynn_fusion_type"

# libtpu opens it when it begins, and keeps it open to its end.
_LIBTPU_LOCK = "libtpu_lockfile"

_replaced: str | None = None
"""The library that torch_tpu has loaded in this process, if it is another than the virtual TPU's."""


_named: str | None = None
"""The library that this process has named to torch_tpu."""


def export() -> int:
    """Builds and loads the library, and names it to every torch_tpu that is imported from now on.

    That holds for this process and its children. Returns the address of the library's PJRT table.

    Raises:
        TorchTpuError: if the library cannot be built or loaded.
    """
    global _replaced, _named
    library = build.build()
    table = _open(library)
    before = envs.current("TPU_LIBRARY_PATH")
    # A name that is ours already says nothing of what torch_tpu loaded before it.
    if "torch_tpu" in sys.modules and before not in (None, "", _named, str(library)):
        _replaced = before
    _named = str(library)
    envs.export(
        TPU_LIBRARY_PATH=str(library),
        TPU_SKIP_MDS_QUERY="1",
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
        XLA_FLAGS=_xla_flags(envs.current("XLA_FLAGS") or ""),
    )
    return table


def _xla_flags(present: str) -> str:
    """Adds our flag to the user's, unless they set it themselves."""
    if _MATMUL_FLAG in present:
        return present
    return f"{present} {_MATMUL_FLAG}=LIBRARY_FUSION_TYPE_DOT".strip()


def install() -> None:
    """Makes the virtual TPU the device that torch_tpu finds in this process.

    Raises:
        TorchTpuError: if the library cannot be built or loaded, or the device is in use already.
    """
    global _replaced
    table = export()
    if _replaced is None:
        return
    if _in_use():
        raise TorchTpuError(_TOO_LATE)
    loaded = ctypes.CDLL(_replaced)
    loaded.GetPjrtApi.restype = ctypes.c_void_p
    target = loaded.GetPjrtApi()
    size, room = (ctypes.c_size_t.from_address(address).value for address in (table, target))
    if size > room:
        raise TorchTpuError(
            f"virtual TPU: its PJRT table has {size} bytes and that of {_replaced} {room}; {_REINSTALL}"
        )
    ctypes.memmove(target, table, size)
    _replaced = None


def _in_use() -> bool:
    """Whether torch_tpu has opened a client, or libtpu has begun and failed: there is no way back."""
    from torch_tpu._internal.device import _device_ops_backend  # pyright: ignore[reportAttributeAccessIssue]

    return _device_ops_backend._is_initialized() or _LIBTPU_LOCK in _open_files()


def _open_files() -> set[str]:
    files = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            files.add(descriptor.readlink().name)
    return files


def _open(library: Path) -> int:
    """Loads the library and returns the address of its PJRT table."""
    try:
        shim = ctypes.CDLL(str(library))
    except OSError as error:
        raise TorchTpuError(
            f"virtual TPU: cannot load {library} ({error}); delete it, and the next start builds it again"
        ) from None
    shim.torchtpu_shim_error.restype = ctypes.c_char_p
    if problem := shim.torchtpu_shim_error():
        raise TorchTpuError(f"virtual TPU: {problem.decode()}; {_REINSTALL}")
    shim.GetPjrtApi.restype = ctypes.c_void_p
    return shim.GetPjrtApi()
