"""Puts the virtual TPU in libtpu's place, early or late in a process.

Early, before torch_tpu is imported, naming the library in TPU_LIBRARY_PATH is enough, and libtpu is
never loaded. Late, after `import torch` has autoloaded torch_tpu and with it libtpu, torch_tpu holds
the address of libtpu's PJRT table already; the table is a writable static struct, so the virtual
TPU's entries are copied over it before the first use of the device.
"""

import ctypes
import sys
from pathlib import Path

from vllm_torchtpu import envs
from vllm_torchtpu.errors import TorchTpuError
from vllm_torchtpu.virtual.build import build

_TOO_LATE = (
    "virtual TPU: torch_tpu has opened a TPU client in this process before; set TORCHTPU_DEVICE=virtual "
    "and make the first use of torch device 'tpu' come after vllm's import"
)


_replaced: str | None = None
"""The library that torch_tpu has loaded in this process, if it is another than the virtual TPU's."""


def export() -> Path:
    """Builds the library and names it to every torch_tpu imported from now on, here and in children.

    Raises:
        TorchTpuError: if the library cannot be built.
    """
    global _replaced
    library = build()
    before = envs.current("TPU_LIBRARY_PATH")
    if "torch_tpu" in sys.modules and before and Path(before) != library:
        _replaced = before
    envs.export(TPU_LIBRARY_PATH=str(library), TPU_SKIP_MDS_QUERY="1", TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    return library


def install() -> None:
    """Makes the virtual TPU the device that torch_tpu finds in this process.

    Raises:
        TorchTpuError: if the library cannot be built or loaded, or the device is in use already.
    """
    global _replaced
    table = _table(export())
    if _replaced is None:
        return
    if _client_exists():
        raise TorchTpuError(_TOO_LATE)
    loaded = ctypes.CDLL(_replaced)
    loaded.GetPjrtApi.restype = ctypes.c_void_p
    _copy(table, loaded.GetPjrtApi(), _replaced)
    _replaced = None


def _table(library: Path) -> int:
    shim = ctypes.CDLL(str(library))
    shim.torchtpu_shim_error.restype = ctypes.c_char_p
    problem = shim.torchtpu_shim_error()
    if problem:
        raise TorchTpuError(f"virtual TPU: {problem.decode()}; install this plugin's pinned dependencies again")
    shim.GetPjrtApi.restype = ctypes.c_void_p
    return shim.GetPjrtApi()


def _copy(source: int, target: int, name: str) -> None:
    size, room = (ctypes.c_size_t.from_address(table).value for table in (source, target))
    if size > room:
        raise TorchTpuError(
            f"virtual TPU: {name} has a PJRT table of {room} bytes and the CPU plugin one of {size}; "
            "install this plugin's pinned dependencies again"
        )
    ctypes.memmove(target, source, size)


def _client_exists() -> bool:
    from torch_tpu._internal.device import _device_ops_backend

    return _device_ops_backend._is_initialized()
