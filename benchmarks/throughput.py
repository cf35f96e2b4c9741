"""Tokens per second of SmolLM2 through the engine beside transformers: ``python -m benchmarks.throughput``."""

import json
import os
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from vllm_torchtpu import envs
from vllm_torchtpu.errors import TorchTpuError

from benchmarks.comparison import Comparison
from benchmarks.contender import Contender, ContenderError
from benchmarks.workload import QUESTIONS, Workload
from demo.checkpoint import SMOLLM2
from demo.conversion.cache import converted
from demo.errors import DemoError

_LOGS = Path(__file__).resolve().parents[1] / "build" / "bench"

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Dtype(StrEnum):
    """The arithmetic of both sides."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"


@app.command(epilog='Example: make bench ARGS="--dtype float32 --json"')
def measure(
    dtype: Annotated[
        list[Dtype] | None, typer.Option(help="May be given more than once.", show_default="both")
    ] = None,
    new_tokens: Annotated[
        int, typer.Option(min=2, help="Tokens that each request generates.")
    ] = 64,
    repetitions: Annotated[int, typer.Option(min=1, help="Turns of each side.")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a program.")] = False,
) -> None:
    """Measure 8 greedy requests at once through this engine and transformers' batched generate.

    Both run on this machine's cores and take turns, so that whatever else the machine does hits
    both; the ratio is the median over turns.
    """
    console = Console(stderr=as_json, highlight=False)
    _warn_if_busy(console)
    comparisons = []
    try:
        model = converted(SMOLLM2, envs.load().cache_dir)
        for name in dtype or list(Dtype):
            workload = Workload(model, name.value, new_tokens)
            comparisons.append(compare(workload, repetitions, console))
    except (ContenderError, DemoError, TorchTpuError) as error:
        print(error, file=sys.stderr)
        raise typer.Exit(1) from None
    if as_json:
        print(
            json.dumps(
                {"model": SMOLLM2.name, "cores": _cores(), "results": _all_json(comparisons)},
                indent=2,
            )
        )
    else:
        console.print(_table(comparisons))


def compare(workload: Workload, repetitions: int, console: Console) -> Comparison:
    """Runs both sides in turns, after one turn of each that does not count.

    Raises:
        ContenderError: One side ended; the sentence names its log.
    """
    stamp = time.strftime("%Y%m%d-%H%M%S")
    console.print(f"{workload.dtype}: starting vLLM and transformers ...")
    engine = Contender(
        "benchmarks.engine", workload, _LOGS / f"engine-{workload.dtype}-{stamp}.log"
    )
    baseline = Contender(
        "benchmarks.baseline", workload, _LOGS / f"baseline-{workload.dtype}-{stamp}.log"
    )
    with engine, baseline:
        engine.repeat()
        baseline.repeat()
        turns = []
        for turn in range(1, repetitions + 1):
            turns.append((engine.repeat(), baseline.repeat()))
            ours, theirs = (workload.tokens / r.seconds for r in turns[-1])
            console.print(f"  turn {turn}: vLLM {ours:.1f}, transformers {theirs:.1f} tokens/s")
    return Comparison(
        workload.dtype,
        len(QUESTIONS),
        workload.new_tokens,
        engine=[ours for ours, _ in turns],
        baseline=[theirs for _, theirs in turns],
    )


def _table(comparisons: list[Comparison]) -> Table:
    first = comparisons[0]
    table = Table(
        "dtype",
        "vLLM tokens/s",
        "transformers tokens/s",
        "ratio",
        "ms per step",
        "of which host",
        title=f"{SMOLLM2.name}, {first.requests} requests x {first.new_tokens} tokens, {_cores()} cores",
    )
    for found in comparisons:
        host = "unknown" if found.host_step_ms is None else f"{found.host_step_ms:.1f}"
        table.add_row(
            found.dtype,
            f"{found.engine_tokens_per_s:.1f}",
            f"{found.baseline_tokens_per_s:.1f}",
            f"{found.ratio:.2f}",
            f"{found.step_ms:.1f}",
            host,
        )
    return table


def _warn_if_busy(console: Console) -> None:
    load = os.getloadavg()[0]
    if load > _cores() / 2:
        console.print(
            f"The load is {load:.1f} on {_cores()} cores: other programs will disturb both sides."
        )


def _all_json(comparisons: list[Comparison]) -> list[dict[str, Any]]:
    return [found.as_json() for found in comparisons]


def _cores() -> int:
    return len(os.sched_getaffinity(0))


if __name__ == "__main__":
    app()
