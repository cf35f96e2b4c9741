"""The other side of the comparison: transformers' batched ``generate`` on this machine's cores."""

import os
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.contender import serve
from benchmarks.workload import QUESTIONS, Repetition, Workload


def prepare(workload: Workload) -> Callable[[], Repetition]:
    """Loads the model on the CPU; the repetition is one padded batch."""
    # Nothing of the plugin's device may load into this process.
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(workload.model, padding_side="left")
    chats = [[{"role": "user", "content": question}] for question in QUESTIONS]
    batch = tokenizer.apply_chat_template(
        chats, add_generation_prompt=True, return_dict=True, padding=True, return_tensors="pt"
    )
    dtype = getattr(torch, workload.dtype)
    model: Any = AutoModelForCausalLM.from_pretrained(workload.model, dtype=dtype).eval()

    def run() -> Repetition:
        start = time.perf_counter()
        with torch.inference_mode():
            output = model.generate(
                **batch,
                min_new_tokens=workload.new_tokens,
                max_new_tokens=workload.new_tokens,
                do_sample=False,
            )
        seconds = time.perf_counter() - start
        assert output.shape[1] - batch["input_ids"].shape[1] == workload.new_tokens
        return Repetition(seconds)

    return run


if __name__ == "__main__":
    serve(prepare, sys.argv[1:])
