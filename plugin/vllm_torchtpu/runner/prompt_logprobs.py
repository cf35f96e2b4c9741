"""Log probabilities of prompt tokens, in row buckets so that no new graph is compiled."""

from typing import TYPE_CHECKING

import torch
from vllm.v1.outputs import LogprobsTensors

if TYPE_CHECKING:
    from vllm_torchtpu.runner.model_runner import TorchTpuModelRunner


def collect(
    runner: "TorchTpuModelRunner",
    hidden_states: torch.Tensor,
    num_scheduled_tokens: dict[str, int],
) -> dict[str, LogprobsTensors | None]:
    """Adds this step's part of each prompt; returns the prompts that are complete.

    Follows vLLM's `GPUModelRunner._get_prompt_logprobs_dict`: the hidden state of a prompt token
    scores the token after it, and a chunked prompt's scores gather over several steps.

    Args:
        runner: Whose requests they are.
        hidden_states: Device tensor [padded tokens, hidden size] of the step.
        num_scheduled_tokens: Tokens of the step by request.
    """
    complete: dict[str, LogprobsTensors | None] = {}
    for request_id, num_logprobs in runner.num_prompt_logprobs.items():
        num_tokens = num_scheduled_tokens.get(request_id)
        request = runner.requests[request_id]
        if num_tokens is None or request.prompt_token_ids is None:
            continue
        prompt = torch.tensor(request.prompt_token_ids)
        scores = request.in_progress_prompt_logprobs_cpu
        if scores is None:
            scores = LogprobsTensors.empty_cpu(len(prompt) - 1, num_logprobs + 1)
            request.in_progress_prompt_logprobs_cpu = scores
        start = request.num_computed_tokens
        remaining = len(prompt) - start - 1
        if num_tokens > remaining:
            complete[request_id] = scores
        row = int(runner.query_start_loc.np[runner.input_batch.req_id_to_index[request_id]])
        for first in range(0, min(num_tokens, remaining), runner.row_buckets.sizes[-1]):
            count = min(num_tokens, remaining, first + runner.row_buckets.sizes[-1]) - first
            _score(
                runner,
                hidden_states,
                row + first,
                prompt[start + first + 1 : start + first + 1 + count],
                num_logprobs,
                scores,
                start + first,
            )
    for request_id in complete:
        del runner.num_prompt_logprobs[request_id]
        runner.requests[request_id].in_progress_prompt_logprobs_cpu = None
    return complete


def _score(
    runner: "TorchTpuModelRunner",
    hidden_states: torch.Tensor,
    first_row: int,
    targets: torch.Tensor,
    num_logprobs: int,
    scores: LogprobsTensors,
    position: int,
) -> None:
    """Scores `targets` by the hidden states from `first_row` on, into `scores` at `position`."""
    count = len(targets)
    rows = torch.zeros(runner.row_buckets.fit(count), dtype=torch.int64)
    rows[:count] = torch.arange(first_row, first_row + count)
    logits = runner.model.compute_logits(hidden_states[rows.to(runner.device)])
    with runner.timer.device():
        logits = logits.cpu()
    logits = logits[:count].float()
    # Prompt tokens skip the sampling processors, so processed and raw scores are the same.
    if runner.model_config.logprobs_mode not in ("raw_logits", "processed_logits"):
        logits = runner.sampler.compute_logprobs(logits)
    gathered = runner.sampler.gather_logprobs(logits, num_logprobs, targets)
    span = slice(position, position + count)
    scores.logprob_token_ids[span] = gathered.logprob_token_ids
    scores.logprobs[span] = gathered.logprobs
    scores.selected_token_ranks[span] = gathered.selected_token_ranks
