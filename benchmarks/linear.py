"""Times the matmuls of a decode step on the virtual TPU, in the forms we choose between.

`python -m benchmarks.linear` prints, for float32 and bfloat16, x @ weight.T against our op
(`vllm_torchtpu.ops.linear`), each with what YNN, a library of XLA's CPU, takes: single dots, which
is XLA's choice, or dots fused with their conversions, which is ours. Ratios compare
with the first line of the dtype; nothing here is asserted by a test.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from typing import Any

from rich.console import Console
from rich.table import Table

# The four linear layers of SmolLM2-135M, out and in features, thirty times over.
_SHAPES = ((960, 576), (576, 576), (3072, 576), (576, 1536))
_LAYERS = 30
_ROWS = 8
_REPETITIONS = 15
_INDIVIDUAL = "--xla_cpu_experimental_ynn_fusion_type=LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT"


def measure() -> dict[str, float]:
    """Returns milliseconds by "dtype form", measured in this process, forms taking turns."""
    from vllm_torchtpu import device

    device.initialise()
    import torch
    from vllm_torchtpu.ops.linear import linear

    forms = {"x @ weight.T": torch.nn.functional.linear, "(weight @ x.T).T": linear}
    runs = {}
    for dtype in (torch.float32, torch.bfloat16):
        weights = [torch.randn(s, dtype=dtype).to("tpu") for s in _SHAPES for _ in range(_LAYERS)]
        inputs = {n: torch.randn(_ROWS, n, dtype=dtype).to("tpu") for n in (576, 1536)}
        for name, form in forms.items():

            def step(inputs, weights, form=form):
                return sum(form(inputs[w.shape[1]], w).sum() for w in weights)

            compiled: Any = torch.compile(step, backend="tpu", fullgraph=True, dynamic=False)
            compiled(inputs, weights).cpu()
            runs[f"{str(dtype).removeprefix('torch.')} {name}"] = (compiled, inputs, weights)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(_REPETITIONS):
        for name, (compiled, inputs, weights) in runs.items():
            start = time.perf_counter()
            compiled(inputs, weights).cpu()
            times[name].append((time.perf_counter() - start) * 1e3)
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    """Runs one process per setting of XLA's CPU and prints one table."""
    found = {}
    for library, flags in (("individual dots", _INDIVIDUAL), ("fused dots", "")):
        environment = os.environ | {
            "TORCHTPU_DEVICE": "virtual",
            "VLLM_XLA_CACHE_PATH": "",
            "XLA_FLAGS": flags,
        }
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.linear", "--measure"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        for name, value in json.loads(done.stdout).items():
            found[f"{name}, {library}"] = value
    table = Table("matmuls of one decode step", "ms", "ratio")
    for name, value in sorted(found.items(), reverse=True):
        base = found[f"{name.split()[0]} x @ weight.T, individual dots"]
        table.add_row(name, f"{value:.1f}", f"{value / base:.2f}")
    Console().print(table)


if __name__ == "__main__":
    if "--measure" in sys.argv:
        json.dump(measure(), sys.stdout)
    else:
        main()
