"""This engine's side of the comparison: vLLM's offline ``LLM`` through the plugin."""

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.contender import serve
from benchmarks.workload import QUESTIONS, Repetition, Workload
from demo.reference import chat_prompts

_MAX_PREFILL_TOKENS = 512


class StepTimes:
    """What the benchmark adds to the worker, through vLLM's ``worker_extension_cls``."""

    model_runner: Any

    def take_host_step_s(self) -> list[float]:
        """Returns the host seconds of each step since the last call, without the device's."""
        steps = self.model_runner.timer.steps
        taken = list(steps)
        steps.clear()
        return taken


def prepare(workload: Workload) -> Callable[[], Repetition]:
    """Starts the engine; the repetition sends all requests at once."""
    import torch
    from vllm import LLM, SamplingParams
    from vllm.inputs import TokensPrompt

    llm = LLM(
        str(workload.model),
        dtype=getattr(torch, workload.dtype),
        max_model_len=1024,
        max_num_seqs=len(QUESTIONS),
        max_num_batched_tokens=_MAX_PREFILL_TOKENS,
        # A cached prefix would make later repetitions another workload than the first.
        enable_prefix_caching=False,
        worker_extension_cls=f"{StepTimes.__module__}.{StepTimes.__qualname__}",
        seed=0,
    )
    prompts = [
        TokensPrompt(prompt_token_ids=ids) for ids in chat_prompts(workload.model, QUESTIONS)
    ]
    sampling = SamplingParams(temperature=0.0, max_tokens=workload.new_tokens, ignore_eos=True)

    def run() -> Repetition:
        llm.collective_rpc("take_host_step_s")
        start = time.perf_counter()
        outputs = llm.generate(prompts, sampling, use_tqdm=False)
        seconds = time.perf_counter() - start
        assert sum(len(output.outputs[0].token_ids) for output in outputs) == workload.tokens
        [host_step_s] = llm.collective_rpc("take_host_step_s")
        return Repetition(seconds, 1000 * statistics.median(host_step_s))

    return run


if __name__ == "__main__":
    # Under -m the module is __main__; the worker process imports the class by this name.
    StepTimes.__module__ = "benchmarks.engine"
    serve(prepare, sys.argv[1:])
