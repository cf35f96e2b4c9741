"""Compares the served tokens with an independent implementation: what makes a run a validation."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo.chat import Chat, Tokens
from demo.errors import DemoError

# Greedy choices that are clear: the runner-up is at least 0.4 behind at each token, far above
# bfloat16's rounding, so that only an error of the engine can change one.
QUESTIONS = (
    "Write the numbers from 1 to 20, separated by commas.",
    "List the planets of the solar system in order from the sun.",
)
TOKENS = 24

_ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Comparison:
    """How many greedy tokens of the server equal the reference's, over all questions."""

    compared: int
    matching: int
    differences: tuple[str, ...]
    """Where they part, one sentence per question."""


def compare(
    questions: Sequence[str], served: Sequence[Tokens], expected: Sequence[Tokens]
) -> Comparison:
    """Compares continuations up to the first token that differs: after it, all may differ."""
    compared, matching, differences = 0, 0, []
    for question, ours, theirs in zip(questions, served, expected, strict=True):
        compared += len(theirs.token_ids)
        if ours.prompt_token_ids != theirs.prompt_token_ids:
            differences.append(
                f"proof: {question!r} is tokenised differently by transformers; compare the chat templates"
            )
            continue
        same = _common_prefix(ours.token_ids, theirs.token_ids)
        matching += same
        if ours.token_ids != theirs.token_ids:
            differences.append(
                f"proof: {question!r} has token {_at(ours.token_ids, same)} at {same} where transformers in "
                f"float32 has {_at(theirs.token_ids, same)}; compare the logits there"
            )
    return Comparison(compared, matching, tuple(differences))


class Reference:
    """transformers' greedy continuations, computed by a process that runs beside the server."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """Takes a process that was started by `running_reference`."""
        self._process = process

    def result(self, timeout_s: float) -> list[Tokens]:
        """Waits for the continuations of QUESTIONS.

        Raises:
            DemoError: The process failed or took longer.
        """
        try:
            output, errors = self._process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            raise DemoError(
                f"reference: transformers needed more than {timeout_s:.0f} s; allow more with --timeout"
            ) from None
        if self._process.returncode != 0:
            last = errors.strip().splitlines()[-1:] or ["no output"]
            raise DemoError(
                f"reference: transformers ended with exit code {self._process.returncode} "
                f"({last[0]}); run `python -m demo.reference` to see all of it"
            )
        return [Tokens(a["prompt_token_ids"], a["token_ids"]) for a in json.loads(output)]


@contextlib.contextmanager
def running_reference(directory: Path) -> Iterator[Reference]:
    """Computes the continuations of QUESTIONS in the background for as long as the block lasts."""
    process = subprocess.Popen(
        [sys.executable, "-m", "demo.reference", str(directory)],
        cwd=_ROOT,
        # The reference must not run on the device whose answers it judges.
        env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "HF_HUB_OFFLINE": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdin is not None
        process.stdin.write(json.dumps({"questions": QUESTIONS, "tokens": TOKENS}))
        process.stdin.close()
        process.stdin = None  # communicate() would flush it
        yield Reference(process)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def served_tokens(chat: Chat) -> list[Tokens]:
    """Returns the server's continuations of QUESTIONS, asked at the same time."""
    with ThreadPoolExecutor(len(QUESTIONS)) as threads:
        return list(threads.map(lambda question: chat.token_ids(question, TOKENS), QUESTIONS))


def _common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(left), len(right)))


def _at(ids: Sequence[int], index: int) -> Any:
    return ids[index] if index < len(ids) else "missing"
