"""vLLM's V1 model runner on a TPU: batch state on the host, padded inputs on the device."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
import torch
from vllm.config import CompilationMode, CUDAGraphMode, VllmConfig
from vllm.forward_context import BatchDescriptor
from vllm.model_executor.models.interfaces_base import VllmModelForTextGeneration
from vllm.sequence import IntermediateTensors
from vllm.v1.core.sched.output import GrammarOutput, SchedulerOutput
from vllm.v1.kv_cache_interface import KVCacheConfig
from vllm.v1.outputs import LogprobsTensors, ModelRunnerOutput, SamplerOutput
from vllm.v1.worker.gpu_model_runner import GPUModelRunner
from vllm.v1.worker.utils import bind_kv_cache

from vllm_torchtpu import envs
from vllm_torchtpu.runner import kv_cache, prompt_logprobs
from vllm_torchtpu.runner.bucket import Buckets
from vllm_torchtpu.runner.compiled_model import CompiledModel
from vllm_torchtpu.runner.guard import CompileGuard
from vllm_torchtpu.runner.sampler import HostSampler, needs_host
from vllm_torchtpu.runner.sampling_rows import SamplingRows
from vllm_torchtpu.runner.seed import RequestSeeds
from vllm_torchtpu.runner.timing import StepTimer

_CPU = torch.device("cpu")


class TorchTpuModelRunner(GPUModelRunner):
    """Overrides the seams where the stock runner meets the device.

    Weights, KV cache and each step's padded inputs live on the device; everything else is on the
    host, so no device op runs outside a compiled graph. Attention inputs are padded to
    `max_num_seqs` requests, so the model needs one graph per token bucket; logits and sampling
    need one per row bucket.
    """

    def __init__(self, vllm_config: VllmConfig, device: torch.device, *, growth: int) -> None:
        """Takes `growth`, the factor between bucket sizes."""
        super().__init__(vllm_config, _CPU)
        self.device = device
        self.token_buckets = Buckets.up_to(self.max_num_tokens, growth=growth)
        self.row_buckets = Buckets.up_to(self.max_num_reqs, growth=growth)
        self.guard = CompileGuard(envs.load().compile_guard)
        self.timer = StepTimer()
        self.sampler = HostSampler(self.model_config.logprobs_mode, self._draw_from_host_logits)
        self._seeds = RequestSeeds(self.model_config.seed)
        self._sampling_rows = SamplingRows(self._seeds)
        self._sample_on_device = self._compiled_sampler()
        self._hidden_states: torch.Tensor | None = None
        self._skip_guards = False
        self._step_shape = "no tokens"

    def _compiled_sampler(self) -> Any:
        from vllm_torchtpu.ops.sampling import sample_tokens

        return torch.compile(sample_tokens, backend="tpu", fullgraph=True, dynamic=False)

    @contextmanager
    def on_host(self) -> Iterator[None]:
        """Lets stock code that allocates on `self.device` allocate on the host."""
        device, self.device = self.device, _CPU
        try:
            yield
        finally:
            self.device = device

    # -- loading and memory

    def load_model(self, *args: Any, **kwargs: Any) -> None:
        """See the base class; then compiles the logits too."""
        super().load_model(*args, **kwargs)
        if self.compilation_config.mode != CompilationMode.NONE:
            backend = self.compilation_config.init_backend(self.vllm_config)
            model = cast(VllmModelForTextGeneration, self.model)
            self.model = cast(Any, CompiledModel(model, backend))

    def get_model(self) -> torch.nn.Module:
        """Returns vLLM's model without our wrapper."""
        return self.model.unwrap() if isinstance(self.model, CompiledModel) else self.model

    def may_reinitialize_input_batch(self, kv_cache_config: KVCacheConfig) -> None:
        """See the base class; the input batch stays on the host."""
        with self.on_host():
            super().may_reinitialize_input_batch(kv_cache_config)

    def initialize_kv_cache_tensors(
        self, kv_cache_config: KVCacheConfig, kernel_block_sizes: list[int], *_: Any, **__: Any
    ) -> dict[str, torch.Tensor]:
        """Allocates the cache in the layout of the attention op and binds it to the layers."""
        caches = kv_cache.allocate(kv_cache_config, self.device)
        bind_kv_cache(
            caches,
            self.compilation_config.static_forward_context,
            self.kv_caches,
            1,
            kv_cache_groups=kv_cache_config.kv_cache_groups,
            layer_kv_caches=caches,
        )
        return caches

    # -- one step

    def _update_states(self, scheduler_output: SchedulerOutput) -> Any:
        with self.on_host():
            corrections = super()._update_states(scheduler_output)
        # Noise follows from `_seeds`. A generator on the host has no offset, which vLLM would move
        # back for a seeded prompt that is prefilled in chunks.
        self.input_batch.generators.clear()
        return corrections

    def _on_request_state_removed(self, req_id: str, req_state: Any) -> None:
        self._seeds.forget(req_id)

    def _determine_batch_execution_and_padding(
        self, num_tokens: int, num_reqs: int, *_: Any, **__: Any
    ) -> tuple[CUDAGraphMode, BatchDescriptor, bool, None, None]:
        # FULL makes the stock code pad tokens and requests. There is no CUDA graph: the configured
        # mode is NONE, so no wrapper exists that could read this.
        padded = BatchDescriptor(
            num_tokens=self.token_buckets.fit(num_tokens), num_reqs=self.max_num_reqs
        )
        self._step_shape = (
            f"{num_tokens} tokens of {num_reqs} requests (bucket {padded.num_tokens})"
        )
        return CUDAGraphMode.FULL, padded, False, None, None

    def _prepare_inputs(
        self, scheduler_output: SchedulerOutput, num_scheduled_tokens: np.ndarray
    ) -> tuple[torch.Tensor, None, int]:
        rows, _, num_sampled = super()._prepare_inputs(scheduler_output, num_scheduled_tokens)
        padded = torch.zeros(self.row_buckets.fit(len(rows)), dtype=torch.int64)
        padded[: len(rows)] = rows
        return padded.to(self.device), None, num_sampled

    def _model_forward(
        self,
        input_ids: torch.Tensor | None = None,
        positions: torch.Tensor | None = None,
        intermediate_tensors: IntermediateTensors | None = None,
        inputs_embeds: torch.Tensor | None = None,
        **model_kwargs: Any,
    ) -> torch.Tensor:
        assert input_ids is not None and positions is not None
        # Every shape was compiled in warm-up, so Dynamo may compare only what tells graphs apart.
        with torch.compiler.set_stance(skip_guard_eval_unsafe=self._skip_guards):
            hidden_states = self.model(
                input_ids=input_ids.to(self.device),
                positions=positions.to(self.device),
                intermediate_tensors=None,
                inputs_embeds=None,
                **model_kwargs,
            )
        self._hidden_states = hidden_states
        return hidden_states

    def execute_model(self, *args: Any, **kwargs: Any) -> Any:
        """See the base class; measures the host's share of the step."""
        with self.timer.host():
            return super().execute_model(*args, **kwargs)

    def sample_tokens(self, grammar_output: GrammarOutput | None) -> ModelRunnerOutput:
        """See the base class; grammar masks are applied on the host."""
        state = self.execute_model_state
        with self.timer.host():
            if grammar_output is not None and state is not None and state.logits is not None:
                with self.timer.device():
                    logits = state.logits.cpu()
                self.execute_model_state = state._replace(
                    logits=logits[: self.input_batch.num_reqs].float()
                )
            output: ModelRunnerOutput = cast(Any, super()).sample_tokens(grammar_output)
        self.timer.finish_step()
        self.guard.check(self._step_shape)
        return output

    def _sample(self, logits: torch.Tensor | None, spec_decode_metadata: Any) -> SamplerOutput:
        assert logits is not None
        metadata = self.input_batch.sampling_metadata
        num_reqs = self.input_batch.num_reqs
        if logits.device.type == "cpu":
            return self.sampler(logits, metadata)
        if needs_host(metadata):
            with self.timer.device():
                logits = logits.cpu()
            return self.sampler(logits[:num_reqs], metadata)
        tokens = self._draw(logits)
        return SamplerOutput(sampled_token_ids=tokens[:num_reqs, None], logprobs_tensors=None)

    def _draw(self, logits: torch.Tensor) -> torch.Tensor:
        """Draws int32 tokens [rows] on the host from device logits [rows, vocab]."""
        packed = self._sampling_rows.pack(self.input_batch, self.requests, logits.shape[0])
        tokens = self._sample_on_device(logits, packed.to(self.device))
        with self.timer.device():
            return tokens.cpu()

    def _draw_from_host_logits(self, logits: torch.Tensor) -> torch.Tensor:
        num_reqs = len(logits)
        padded = torch.zeros(self.row_buckets.fit(num_reqs), logits.shape[1])
        padded[:num_reqs] = logits
        return self._draw(padded.to(self.device))[:num_reqs]

    def _to_list(self, sampled_token_ids: torch.Tensor) -> list[list[int]]:
        return sampled_token_ids.tolist()

    def _sync_device(self) -> None:
        """Nothing: results reach the host by blocking copies."""

    def _get_prompt_logprobs_dict(
        self, hidden_states: torch.Tensor, num_scheduled_tokens: dict[str, int]
    ) -> dict[str, LogprobsTensors | None]:
        if not self.num_prompt_logprobs:
            return {}
        assert self._hidden_states is not None
        return prompt_logprobs.collect(self, self._hidden_states, num_scheduled_tokens)

    # -- warm-up and end

    def end_warm_up(self) -> None:
        """From now on a compilation is reported and guards are evaluated sparingly.

        Not with --enforce-eager, which compiles op by op whatever comes.
        """
        if self.compilation_config.mode != CompilationMode.NONE:
            self._skip_guards = True
            self.guard.arm()

    def shutdown(self) -> None:
        """Drops the tensors.

        The stock method synchronises the device; at interpreter exit torch_tpu's own exit hook has
        already stopped the runtime, and that call never returns.
        """
        self.kv_caches.clear()
        self._hidden_states = None
