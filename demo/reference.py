"""Computes greedy tokens with transformers in float32 on the CPU: what the engine must equal.

It imports neither vLLM nor the plugin. ``python -m demo.reference MODEL_DIR`` reads questions as
JSON from standard input and writes the tokens as JSON, so that the demo can run it beside the
server with PyTorch's device plugins switched off.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Greedy:
    """A greedy continuation.

    Attributes:
        token_ids: The chosen tokens, in order.
        margins: For each of them, its logit minus that of the runner-up. Below the rounding
            error of the engine's arithmetic (about 1e-3 in float32) the choice is a tie, and
            says nothing about the engine.
    """

    token_ids: list[int]
    margins: list[float]


def greedy(directory: Path, prompts: Sequence[Sequence[int]], tokens: int) -> list[Greedy]:
    """Continues each prompt by exactly ``tokens`` tokens, end-of-sequence ignored."""
    import torch
    from transformers import AutoModelForCausalLM

    model: Any = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()
    continuations = []
    for prompt in prompts:
        with torch.inference_mode():
            output = model.generate(
                torch.tensor([list(prompt)]),
                max_new_tokens=tokens,
                do_sample=False,
                eos_token_id=None,
                pad_token_id=0,
                return_dict_in_generate=True,
                output_logits=True,
            )
        best = torch.stack([step[0].float() for step in output.logits]).topk(2).values
        continuations.append(
            Greedy(output.sequences[0, len(prompt) :].tolist(), (best[:, 0] - best[:, 1]).tolist())
        )
    return continuations


def chat_prompts(directory: Path, questions: Sequence[str]) -> list[list[int]]:
    """Returns each question as the token ids of a chat of one user message."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(directory)
    return [
        tokenizer.apply_chat_template(
            [{"role": "user", "content": question}], add_generation_prompt=True, return_dict=True
        )["input_ids"]
        for question in questions
    ]


def main() -> None:
    """Reads ``{"questions": [text, ...], "tokens": n}``, writes prompts and continuations."""
    request = json.load(sys.stdin)
    directory = Path(sys.argv[1])
    prompts = chat_prompts(directory, request["questions"])
    found = greedy(directory, prompts, request["tokens"])
    answers = [
        {"prompt_token_ids": prompt, **asdict(continuation)}
        for prompt, continuation in zip(prompts, found, strict=True)
    ]
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
