"""The vLLM platform: what vLLM asks about the device, and the configuration it gets.

vLLM imports this module while it imports its own configuration, hence the late imports.
"""

from __future__ import annotations

import argparse
import dataclasses
from typing import TYPE_CHECKING

import torch
from vllm.logger import init_logger
from vllm.platforms.interface import Platform, PlatformEnum

from vllm_torchtpu import device, ending, envs, memory
from vllm_torchtpu.errors import TorchTpuError, show_sentences

if TYPE_CHECKING:
    from vllm.config import VllmConfig
    from vllm.config.compilation import PassConfig

logger = init_logger("vllm.torchtpu.platform")

_UPSTREAM_DEFAULTS = {
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
    "VLLM_WORKER_SHUTDOWN_TIMEOUT_SECONDS": "30",
}

# vLLM looks it up where a model runs; Dynamo is not loaded before.
_VIRTUAL_TPU_BACKEND = "vllm_torchtpu.runner.backend.virtual_tpu"


def _no_passes() -> PassConfig:
    """Returns vLLM's switches of its graph passes, all off."""
    from vllm.config.compilation import PassConfig

    return PassConfig(**{f.name: False for f in dataclasses.fields(PassConfig) if f.type is bool})


class TorchTpuPlatform(Platform):
    """TPUs and the virtual TPU, through torch_tpu.

    Runs in the API server too, so nothing here touches the device.
    """

    _enum = PlatformEnum.OOT
    device_name = "tpu"
    device_type = "tpu"
    dispatch_key = "PrivateUse1"
    dist_backend = "gloo"
    # vLLM's small compiled functions run on host tensors here, where Inductor has no place.
    simple_compile_backend = "eager"
    device_control_env_var = "TPU_VISIBLE_CHIPS"
    supported_quantization: list[str] = []
    _has_command_line = False

    def __init__(self) -> None:
        super().__init__()
        show_sentences()
        ending.keep_quiet()
        # vLLM's configuration names the device long before a worker makes it usable.
        torch.utils.rename_privateuse1_backend(self.device_type)

    @property
    def supported_dtypes(self) -> list[torch.dtype]:
        """bfloat16 first: it is what dtype "auto" falls back to."""
        return [torch.bfloat16, torch.float32, torch.float16]

    @classmethod
    def import_kernels(cls) -> None:
        """Nothing: vLLM's C extensions are not built for this platform."""

    @classmethod
    def get_device_name(cls, device_id: int = 0) -> str:
        """Names the device for logs and metrics."""
        found = device.resolve()
        return "virtual TPU" if found and found.kind == "virtual" else "TPU"

    @classmethod
    def get_device_total_memory(cls, device_id: int = 0) -> int:
        """Returns the bytes that one device has."""
        return memory.total_bytes()

    @classmethod
    def get_current_memory_usage(cls, device: torch.types.Device = None) -> float:
        """Returns the bytes in use, by which vLLM reports what the weights take."""
        return float(memory.used_bytes())

    @classmethod
    def set_device(cls, device: torch.device) -> None:
        """Nothing: each worker process has one device."""

    @classmethod
    def manual_seed_all(cls, seed: int) -> None:
        """Nothing beyond torch.manual_seed: sampling noise is a function of each request's seed."""

    @classmethod
    def is_pin_memory_available(cls) -> bool:
        """There is none."""
        return False

    @classmethod
    def check_if_supports_dtype(cls, dtype: torch.dtype) -> None:
        """Raises for a dtype that models cannot run in."""
        supported = (torch.bfloat16, torch.float32, torch.float16)
        if dtype not in supported:
            names = ", ".join(str(d).removeprefix("torch.") for d in supported)
            raise TorchTpuError(f"--dtype: found {dtype}; use one of {names}")

    @classmethod
    def get_attn_backend_cls(cls, selected_backend, attn_selector_config, num_heads=None) -> str:
        """Names the attention backend, or says why none fits.

        Raises:
            TorchTpuError: Another backend was chosen, or the model needs what ours lacks.
        """
        from vllm.v1.attention.backends.registry import AttentionBackendEnum

        from vllm_torchtpu.attention.paged import PagedAttentionBackend

        if selected_backend not in (None, AttentionBackendEnum.CUSTOM):
            raise TorchTpuError(
                f"--attention-backend: found {selected_backend.name}, which does not run on a TPU; "
                "leave it out"
            )
        reasons = PagedAttentionBackend.validate_configuration(
            **attn_selector_config._asdict(), device_capability=None
        )
        if reasons:
            raise TorchTpuError(
                f"attention: {'; '.join(reasons)}, but this model needs it; choose another model"
            )
        return AttentionBackendEnum.CUSTOM.get_path()

    @classmethod
    def register_triton_kernel_overrides(cls) -> None:
        """Replaces the one Triton kernel that the V1 runner launches on our path."""
        from vllm.triton_utils.dispatcher import register_kernels

        from vllm_torchtpu.ops.slot_mapping import compute_slot_mapping

        register_kernels(
            {"vllm.v1.worker.block_table.ComputeSlotMappingKernel.kernel": compute_slot_mapping}
        )

    @classmethod
    def get_compile_backend(cls) -> str:
        """torch_tpu's torch.compile backend, by way of ours on the virtual TPU."""
        found = device.resolve()
        return _VIRTUAL_TPU_BACKEND if found and found.kind == "virtual" else "tpu"

    @classmethod
    def support_hybrid_kv_cache(cls) -> bool:
        """Layers with and without a sliding window share one pool of pages."""
        return True

    @classmethod
    def pre_register_and_update(cls, parser: argparse.ArgumentParser | None = None) -> None:
        """Turns asynchronous scheduling off by default on the command line.

        So a user's --async-scheduling can be told from vLLM's own default, and refused.
        """
        if parser is not None:
            parser.set_defaults(async_scheduling=False)
            cls._has_command_line = True

    @classmethod
    def apply_config_platform_defaults(cls, vllm_config: VllmConfig) -> None:
        """Refuses what is not supported, while what the user chose can still be told.

        Raises:
            TorchTpuError: One line per unsupported option.
        """
        from vllm_torchtpu.support import refuse_unsupported

        refuse_unsupported(vllm_config, async_is_a_choice=cls._has_command_line)

    @classmethod
    def check_and_update_config(cls, vllm_config: VllmConfig) -> None:
        """Refuses sizes that cannot fit, then sets what this platform needs.

        Raises:
            TorchTpuError: One line per size.
        """
        from vllm.config import CompilationMode, CUDAGraphMode
        from vllm.config.vllm import OptimizationLevel

        from vllm_torchtpu.fit import refuse_what_cannot_fit

        refuse_what_cannot_fit(vllm_config)
        vllm_config.parallel_config.worker_cls = "vllm_torchtpu.worker.TorchTpuWorker"
        ending.end_at_once_while_starting(ending.Process.API_SERVER)
        for name, value in _UPSTREAM_DEFAULTS.items():
            if envs.current(name) is None:
                envs.export(**{name: value})
        if vllm_config.scheduler_config.async_scheduling:
            logger.info("Scheduling is synchronous: asynchronous scheduling is not supported yet.")
            vllm_config.scheduler_config.async_scheduling = False
        level = vllm_config.optimization_level
        if level in (OptimizationLevel.O1, OptimizationLevel.O3):
            logger.info("-O%d compiles as -O2 does: torch_tpu has one level.", level)
        compilation = vllm_config.compilation_config
        compilation.cudagraph_mode = CUDAGraphMode.NONE
        compilation.cudagraph_capture_sizes = []
        compilation.max_cudagraph_capture_size = 0
        compilation.splitting_ops = []
        # vLLM's defaults name passes over graphs that Inductor would compile.
        compilation.pass_config = _no_passes()
        if compilation.mode != CompilationMode.NONE:
            compilation.mode = CompilationMode.STOCK_TORCH_COMPILE
            compilation.backend = cls.get_compile_backend()
