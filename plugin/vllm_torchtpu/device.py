"""Which device serves in this process, and how it becomes usable.

`resolve` decides, `prepare` makes this process and its children ready for the decision without
importing torch_tpu, and `initialise` makes torch device "tpu" usable where a model runs.
"""

import logging
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from vllm_torchtpu import envs, rivals, silence
from vllm_torchtpu.compile import cache
from vllm_torchtpu.errors import TorchTpuError
from vllm_torchtpu.virtual import overlay

logger = logging.getLogger("vllm.torchtpu.device")

# Google's PCI vendor; it also makes network cards, hence the list of TPUs
# (torch_tpu/_internal/utils/hardware.py: v4, v5p, v5e, v6e, v7).
_PCI_VENDOR = "0x1ae0"
_PCI_TPUS = frozenset({"0x005e", "0x0062", "0x0063", "0x006f", "0x0076"})

_lock = threading.Lock()
_initialised = False

_VIRTUAL_WARNING = (
    "No TPU and no other device of vLLM found: serving on the virtual TPU, which computes on this host's "
    "CPU. It is for tests, not for speed. TORCHTPU_DEVICE=virtual chooses it without this warning."
)


@dataclass(frozen=True)
class Device:
    """The device of this process."""

    kind: Literal["tpu", "virtual"]
    reason: str
    """Why it was chosen, for logs and messages."""


_decision: tuple[Device | None] | None = None


def resolve() -> Device | None:
    """Chooses the device by TORCHTPU_DEVICE; None leaves the process to another vLLM platform.

    Decides once per process.

    Raises:
        TorchTpuError: a variable has a bad value, or a TPU is demanded and there is none.
    """
    global _decision
    if _decision is None:
        if rivals.asking():  # a rival that we ask about itself asks about us: it goes first
            return None
        _decision = (_decide(),)
    return _decision[0]


def _decide() -> Device | None:
    choice = envs.load().device
    if choice == "virtual":
        return Device("virtual", "TORCHTPU_DEVICE is virtual")
    if choice == "tpu":
        if not has_tpu():
            raise TorchTpuError(
                "TORCHTPU_DEVICE: found 'tpu', but this host has no TPU (no PCI device of vendor "
                f"{_PCI_VENDOR} under /dev/vfio, no /dev/accel*); use a host with one, or set it to virtual"
            )
        return Device("tpu", "TORCHTPU_DEVICE is tpu")
    if (rival := rivals.active_plugin()) is not None:
        logger.info("Platform plugin %s is active, so torchtpu is not", rival)
        return None
    if has_tpu():
        return Device("tpu", "this host has a TPU")
    if rivals.builtin_platform() is not None:
        return None
    logger.warning(_VIRTUAL_WARNING)
    return Device("virtual", "this host has no TPU and vLLM has no other device")


def has_tpu(root: Path = Path("/")) -> bool:
    """Whether a TPU is attached to this host and given to this machine or container."""
    for pci in root.glob("sys/bus/pci/devices/*"):
        try:
            if (pci / "vendor").read_text().strip() != _PCI_VENDOR:
                continue
            if (pci / "device").read_text().strip() not in _PCI_TPUS:
                continue
            group = (pci / "iommu_group").readlink().name
        except OSError:
            continue
        if (root / "dev/vfio" / group).exists():
            return True
    return any(root.glob("dev/accel[0-9]*"))


def prepare(device: Device) -> None:
    """Readies this process and its children for the device; imports neither torch nor torch_tpu.

    Children inherit the decision, so that they neither decide nor warn again.

    Raises:
        TorchTpuError: the virtual TPU cannot be built, or the compilation cache cannot be used.
    """
    silence.native_log()
    envs.export(TORCHTPU_DEVICE=device.kind)
    if device.kind == "virtual":
        overlay.export()
    cache.configure(device.kind)


def initialise() -> Device:
    """Makes torch device "tpu" usable in this process; a second call does nothing.

    Raises:
        TorchTpuError: there is no device, or it cannot be made usable.
    """
    global _initialised
    device = resolve()
    if device is None:
        raise TorchTpuError(
            "device: another vLLM platform is active; set TORCHTPU_DEVICE=virtual or tpu to use ours"
        )
    with _lock:
        if not _initialised:
            prepare(device)
            if device.kind == "virtual":
                overlay.install()
            with silence.startup(virtual=device.kind == "virtual"):
                import torch_tpu._loader

                torch_tpu._loader._init_device("tpu")
                cache.forget_pickles()
                if device.kind == "virtual":
                    _open_virtual()
            _initialised = True
    return device


def _open_virtual() -> None:
    """Uses the device once: what is wrong shows now, and torch_tpu's remarks come while they are silenced.

    A TPU is not opened here: its client must come after the process group is set up.
    """
    import torch

    try:
        torch.zeros(1).to("tpu")  # raises without a device, where an operation would abort
        torch.empty(1, device="tpu").cpu()  # sets up torch_tpu's compilation cache
    except RuntimeError as error:
        raise TorchTpuError(
            f"virtual TPU: it does not open ({error}); see the log lines above"
        ) from error
