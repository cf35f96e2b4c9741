"""Compiles every graph before the first request, with progress per bucket."""

import sys
import time

import torch
from tqdm import tqdm
from vllm.forward_context import set_forward_context
from vllm.logger import init_logger

from vllm_torchtpu.compile.counter import compilation_count, executable_count
from vllm_torchtpu.runner.model_runner import TorchTpuModelRunner

logger = init_logger("vllm.torchtpu.warmup")


@torch.inference_mode()
def warm_up(runner: TorchTpuModelRunner) -> float:
    """Runs each bucket once and arms the compile guard; returns the seconds it took."""
    start = time.perf_counter()
    compiled, graphs = compilation_count(), executable_count()
    tokens = tqdm(
        runner.token_buckets.sizes,
        desc="Compiling",
        unit="bucket",
        file=sys.stderr,
        disable=None if sys.stderr.isatty() else True,
    )
    for num_tokens in tokens:
        bucket_start = time.perf_counter()
        tokens.set_postfix_str(f"{num_tokens} tokens")
        hidden_states = _run_model(runner, num_tokens)
        for num_rows in runner.row_buckets.sizes:
            rows = torch.zeros(num_rows, dtype=torch.int64).to(runner.device)
            gathered = hidden_states[rows]
            # torch_tpu defers eager ops until somebody reads the result.
            gathered.cpu()
            if num_tokens == runner.token_buckets.sizes[0]:
                _run_sampling(runner, gathered)
        logger.info(
            "Compiled the graphs of %d tokens in %.1f s",
            num_tokens,
            time.perf_counter() - bucket_start,
        )
    runner.end_warm_up()
    seconds = time.perf_counter() - start
    logger.info(
        "torchtpu: warm-up finished: graphs=%d compiled=%d seconds=%.1f",
        executable_count() - graphs,
        compilation_count() - compiled,
        seconds,
    )
    return seconds


def _run_model(runner: TorchTpuModelRunner, num_tokens: int) -> torch.Tensor:
    """Runs the model on padding alone: no request, so nothing is written to the cache."""
    runner.query_start_loc.np.fill(0)
    runner.query_start_loc.copy_to_gpu()
    runner.seq_lens.zero_()
    runner.optimistic_seq_lens_cpu.zero_()
    with runner.on_host():
        slots, slots_by_layer = runner._get_slot_mappings(num_tokens, runner.max_num_reqs, 0)
        metadata, _ = runner._build_attention_metadata(
            num_tokens=num_tokens,
            num_reqs=1,
            max_query_len=1,
            num_tokens_padded=num_tokens,
            num_reqs_padded=runner.max_num_reqs,
            slot_mappings=slots,
        )
    with set_forward_context(
        metadata, runner.vllm_config, num_tokens=num_tokens, slot_mapping=slots_by_layer
    ):
        runner.input_ids.gpu[:num_tokens].zero_()
        runner.positions[:num_tokens].zero_()
        return runner._model_forward(
            runner.input_ids.gpu[:num_tokens], runner.positions[:num_tokens]
        )


def _run_sampling(runner: TorchTpuModelRunner, hidden_states: torch.Tensor) -> None:
    """Compiles the logits of these rows and the sampler, for logits of either origin."""
    from vllm_torchtpu.ops.sampling import NUM_COLUMNS

    logits = runner.model.compute_logits(hidden_states)
    packed = torch.zeros(logits.shape[0], NUM_COLUMNS, dtype=torch.int32)
    for source in {logits.dtype, torch.float32}:
        runner._sample_on_device(logits.to(source), packed.to(runner.device)).cpu()
