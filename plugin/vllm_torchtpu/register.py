"""The entry point by which vLLM finds this plugin (group `vllm.platform_plugins`)."""

from vllm_torchtpu import device
from vllm_torchtpu.errors import exit_with_sentence

PLATFORM = "vllm_torchtpu.platform.TorchTpuPlatform"


def platform_plugin() -> str | None:
    """Names the platform class if a TPU or the virtual TPU is this process's device, else None."""
    with exit_with_sentence():
        found = device.resolve()
        if found is None:
            return None
        device.prepare(found)
        return PLATFORM
