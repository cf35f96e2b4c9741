"""One vLLM engine for a test module, in processes of its own that end with it."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

MAX_NUM_SEQS = 4
MAX_NUM_BATCHED_TOKENS = 64


@contextlib.contextmanager
def engine(directory: Path, **options: Any) -> Iterator[Any]:
    """Yields a vllm.LLM in float32 with few small buckets; its processes are gone afterwards."""
    from vllm import LLM

    options = {
        "dtype": "float32",
        "max_model_len": 256,
        "max_num_seqs": MAX_NUM_SEQS,
        "max_num_batched_tokens": MAX_NUM_BATCHED_TOKENS,
        "disable_log_stats": True,
        "max_logprobs": -1,
    } | options
    llm = LLM(str(directory), **options)
    try:
        yield llm
    finally:
        llm.llm_engine.engine_core.shutdown()


def generate(llm: Any, prompts: Sequence[Sequence[int]], *params: Any) -> list[Any]:
    """Runs prompts of token ids, all at once; one set of parameters serves them all."""
    requests = [{"prompt_token_ids": list(prompt)} for prompt in prompts]
    chosen = list(params) if len(params) > 1 else params[0]
    return llm.generate(requests, chosen, use_tqdm=False)


def tokens(outputs: Sequence[Any]) -> list[list[int]]:
    """Returns the token ids of each request's first completion."""
    return [list(output.outputs[0].token_ids) for output in outputs]


def greedy_params(count: int, **options: Any) -> Any:
    """Returns parameters of exactly `count` greedy tokens."""
    from vllm import SamplingParams

    return SamplingParams(temperature=0, max_tokens=count, ignore_eos=True, **options)
