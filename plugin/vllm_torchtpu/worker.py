"""The vLLM worker: one process per device."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, cast

import torch
from vllm.logger import init_logger
from vllm.platforms import current_platform
from vllm.utils.torch_utils import set_random_seed
from vllm.v1.worker.gpu_worker import Worker, init_worker_distributed_environment
from vllm.v1.worker.worker_base import CompilationTimes

from vllm_torchtpu import device, ending, memory
from vllm_torchtpu.fit import activation_bytes

if TYPE_CHECKING:
    from vllm_torchtpu.runner.model_runner import TorchTpuModelRunner

logger = init_logger("vllm.torchtpu.worker")
# Compiling costs more than padding on the virtual TPU; a TPU's matmuls are worth closer sizes.
_BUCKET_GROWTH = {"virtual": 4, "tpu": 2}


class TorchTpuWorker(Worker):
    """Readies the device, sizes the KV cache and compiles; the rest is vLLM's."""

    def init_device(self) -> None:
        """Makes the device usable and builds the model runner."""
        ending.end_at_once_while_starting(ending.Process.ENGINE)
        self.kind = device.initialise().kind
        self.device = torch.device("tpu", 0)
        current_platform.check_if_supports_dtype(self.model_config.dtype)
        # Every bucket is a graph of its own; Dynamo would give up after eight.
        torch._dynamo.config.recompile_limit = 256
        torch._dynamo.config.automatic_dynamic_shapes = False
        init_worker_distributed_environment(
            self.vllm_config,
            self.rank,
            self.distributed_init_method,
            self.local_rank,
            current_platform.dist_backend,
        )
        set_random_seed(self.model_config.seed)
        self._init_workspace_and_model_runner()

    def _make_model_runner(self) -> TorchTpuModelRunner:
        # Its operations build on torch_tpu, which init_device has loaded.
        from vllm_torchtpu.runner.model_runner import TorchTpuModelRunner

        assert self.device is not None
        return TorchTpuModelRunner(self.vllm_config, self.device, growth=_BUCKET_GROWTH[self.kind])

    @torch.inference_mode()
    def determine_available_memory(self) -> int:
        """Returns the bytes of the KV cache, from real weights and computed activations."""
        total = memory.total_bytes()
        budget = memory.Budget(
            total=total,
            usable=int(total * self.cache_config.gpu_memory_utilization),
            weights=_weight_bytes(self.model_runner.get_model()),
            activations=activation_bytes(self.vllm_config),
        )
        logger.info("Memory of the %s: %s", current_platform.get_device_name(), budget)
        return memory.kv_cache_bytes(budget, self.cache_config.kv_cache_memory_bytes)

    def compile_or_warm_up_model(self) -> CompilationTimes:
        """Compiles every graph that serving needs."""
        from vllm_torchtpu.runner.warmup import warm_up

        runner = cast("TorchTpuModelRunner", self.model_runner)
        seconds = warm_up(runner)
        ending.let_requests_end()
        return CompilationTimes(language_model=seconds, encoder=0.0)

    def _scoped_allocator_max_split(self, max_split_size_mb: int) -> AbstractContextManager[None]:
        return nullcontext()

    def _maybe_get_memory_pool_context(self, tag: str) -> AbstractContextManager[None]:
        return nullcontext()


def _weight_bytes(model: torch.nn.Module) -> int:
    """Counts parameters and buffers on the device; tied ones once."""
    tensors = {id(t): t for t in (*model.parameters(), *model.buffers())}
    return sum(t.numel() * t.element_size() for t in tensors.values())
