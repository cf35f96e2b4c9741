"""Packs what the sampling op needs to know about each row of logits."""

from collections.abc import Mapping

import numpy as np
import torch
from vllm.v1.sample.metadata import SamplingMetadata
from vllm.v1.worker.gpu_input_batch import CachedRequestState, InputBatch

from vllm_torchtpu.runner.seed import RequestSeeds


class SamplingRows:
    """Keeps the packed parameters of the present batch and rebuilds them when it changes."""

    def __init__(self, seeds: RequestSeeds) -> None:
        self._seeds = seeds
        self._built_for: SamplingMetadata | None = None
        self._rows = np.zeros((0, 0), np.int32)

    def pack(
        self, batch: InputBatch, requests: Mapping[str, CachedRequestState], num_rows: int
    ) -> torch.Tensor:
        """Returns int32 [num_rows, NUM_COLUMNS] on the host; padded rows are greedy."""
        from vllm_torchtpu.ops import sampling as columns

        # vLLM makes a new metadata object whenever the batch changes.
        if self._built_for is not batch.sampling_metadata or len(self._rows) != num_rows:
            self._rows = self._build(batch, requests, num_rows)
            self._built_for = batch.sampling_metadata
        n = batch.num_reqs
        self._rows[:n, columns.COUNTER] = batch.num_tokens_no_spec[:n] - batch.num_prompt_tokens[:n]
        return torch.from_numpy(self._rows)

    def _build(
        self, batch: InputBatch, requests: Mapping[str, CachedRequestState], num_rows: int
    ) -> np.ndarray:
        from vllm_torchtpu.ops import sampling as columns

        n = batch.num_reqs
        rows = np.zeros((num_rows, columns.NUM_COLUMNS), np.int32)
        real = rows.view(np.float32)
        real[:, columns.TOP_P] = 1.0
        real[:n, columns.TEMPERATURE] = batch.temperature_cpu[:n]
        real[:n, columns.TOP_P] = batch.top_p_cpu[:n]
        # vLLM stores the vocabulary size where top_k is off; the op reads any such value as off.
        rows[:n, columns.TOP_K] = batch.top_k_cpu[:n]
        for row, request_id in enumerate(batch.req_ids[:n]):
            params = requests[request_id].sampling_params
            assert params is not None
            real[row, columns.MIN_P] = params.min_p
            words = self._seeds.of(request_id, params)
            rows[row, columns.SEED_LOW : columns.SEED_HIGH + 1] = words
        return rows
