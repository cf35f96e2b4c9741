"""Sampling: on the device for the common parameters, with host processing for the rare ones.

Both ways draw with the same op and the same per-request noise, so a request's text does not depend
on what its neighbours ask for.
"""

from collections.abc import Callable

import torch
from vllm.config.model import PROCESSED_LOGPROBS_MODES, LogprobsMode
from vllm.v1.outputs import SamplerOutput
from vllm.v1.sample.logits_processor import (
    LogitBiasLogitsProcessor,
    LogitsProcessor,
    MinPLogitsProcessor,
    MinTokensLogitsProcessor,
)
from vllm.v1.sample.metadata import SamplingMetadata
from vllm.v1.sample.ops.topk_topp_sampler import apply_top_k_top_p_pytorch
from vllm.v1.sample.sampler import Sampler


def needs_host(metadata: SamplingMetadata) -> bool:
    """Whether a request of this batch asks for what only the host path does.

    That is logprobs, penalties, bad_words, allowed_token_ids, logit_bias, min_tokens, thinking
    budgets and custom logits processors.
    """
    holder = metadata.thinking_budget_state_holder
    return (
        metadata.max_num_logprobs is not None
        or bool(metadata.logprob_token_ids)
        or not metadata.no_penalties
        or bool(metadata.bad_words_token_ids)
        or metadata.allowed_token_ids_mask is not None
        or any(_is_active(p) for p in metadata.logitsprocs.non_argmax_invariant)
        or _has_custom_scaling(metadata)
        or (holder is not None and holder.has_tracked_requests())
    )


def _is_active(processor: LogitsProcessor) -> bool:
    """Whether a request uses it: vLLM's own processors keep a mapping of those that do."""
    match processor:
        case LogitBiasLogitsProcessor():
            return bool(processor.biases)
        case MinTokensLogitsProcessor():
            return bool(processor.min_toks)
    return True


def _has_custom_scaling(metadata: SamplingMetadata) -> bool:
    return any(
        not isinstance(p, MinPLogitsProcessor) for p in metadata.logitsprocs.argmax_invariant
    )


class HostSampler(Sampler):
    """vLLM's sampler on host logits, except that tokens are drawn by the device op."""

    def __init__(
        self, logprobs_mode: LogprobsMode, draw: Callable[[torch.Tensor], torch.Tensor]
    ) -> None:
        """Takes `draw`, which maps processed host logits [requests, vocab] to int32 tokens."""
        super().__init__(logprobs_mode=logprobs_mode)
        self._draw = draw

    def forward(
        self, logits: torch.Tensor, sampling_metadata: SamplingMetadata, *args, **kwargs
    ) -> SamplerOutput:
        """See the base class; takes float32 host logits of exactly the batch's requests."""
        return super().forward(logits.float(), sampling_metadata, *args, **kwargs)

    def sample(
        self,
        logits: torch.Tensor,
        sampling_metadata: SamplingMetadata,
        logprobs_mode_override: LogprobsMode | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Draws, and computes processed logits or logprobs where they are to be returned."""
        if _has_custom_scaling(sampling_metadata):
            logits = self._scale_by_custom_processors(logits, sampling_metadata)
        tokens = self._draw(logits)
        mode = logprobs_mode_override or self.logprobs_mode
        wants_logprobs = (
            sampling_metadata.max_num_logprobs is not None or sampling_metadata.logprob_token_ids
        )
        if mode not in PROCESSED_LOGPROBS_MODES or not wants_logprobs:
            return tokens, None
        processed = self._process(logits, sampling_metadata)
        if mode == "processed_logprobs":
            processed = self.compute_logprobs(processed)
        return tokens, processed

    def _scale_by_custom_processors(
        self, logits: torch.Tensor, metadata: SamplingMetadata
    ) -> torch.Tensor:
        """Applies custom argmax-invariant processors, which expect logits over temperature."""
        if metadata.temperature is None:
            return logits
        temperature = torch.where(metadata.temperature > 0, metadata.temperature, 1.0)[:, None]
        scaled = logits / temperature
        for processor in metadata.logitsprocs.argmax_invariant:
            if not isinstance(processor, MinPLogitsProcessor):
                scaled = processor.apply(scaled)
        return scaled * temperature

    def _process(self, logits: torch.Tensor, metadata: SamplingMetadata) -> torch.Tensor:
        """Returns logits after temperature, min_p, top_k and top_p, as vLLM reports them."""
        if metadata.temperature is None:
            return logits
        scaled = self.apply_temperature(logits.clone(), metadata.temperature, metadata.all_random)
        for processor in metadata.logitsprocs.argmax_invariant:
            if isinstance(processor, MinPLogitsProcessor):
                scaled = processor.apply(scaled)
        return apply_top_k_top_p_pytorch(scaled, metadata.top_k, metadata.top_p)
