"""The 64 bits from which each request's sampling noise follows."""

import numpy as np
from vllm.sampling_params import SamplingParams


class RequestSeeds:
    """Remembers one seed per request: the user's, or one drawn when the request arrives."""

    def __init__(self, engine_seed: int) -> None:
        self._draw = np.random.default_rng(engine_seed)
        self._seeds: dict[str, tuple[int, int]] = {}

    def of(self, request_id: str, params: SamplingParams) -> tuple[int, int]:
        """Returns the low and high word as int32 bit patterns."""
        seed = self._seeds.get(request_id)
        if seed is None:
            bits = self._bits(params)
            words = np.array([bits & 0xFFFFFFFF, bits >> 32], np.uint32).view(np.int32)
            seed = self._seeds[request_id] = (int(words[0]), int(words[1]))
        return seed

    def forget(self, request_id: str) -> None:
        """Drops a finished request's seed."""
        self._seeds.pop(request_id, None)

    def _bits(self, params: SamplingParams) -> int:
        if params.seed is None:
            return int(self._draw.integers(0, 1 << 64, dtype=np.uint64))
        return params.seed & 0xFFFFFFFFFFFFFFFF
