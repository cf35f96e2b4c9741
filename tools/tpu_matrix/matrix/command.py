"""From a row to the exact `vllm serve` command: the one function that everybody uses."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from tpu_matrix.matrix.model import Feature, Row

FIELD_OPTIONS = {
    "revision": "revision",
    "quantization": "quantization",
    "dtype": "dtype",
    "kv_cache_dtype": "kv-cache-dtype",
    "max_model_len": "max-model-len",
    "max_num_seqs": "max-num-seqs",
    "max_num_batched_tokens": "max-num-batched-tokens",
}
"""Row fields and the vLLM option that each one sets."""

PARALLEL_OPTIONS = {
    "tp": "tensor-parallel-size",
    "dp": "data-parallel-size",
    "pp": "pipeline-parallel-size",
    "ep": "enable-expert-parallel",
}
"""Keys of `parallel` and the vLLM option that each one sets."""


def serve_argv(
    row: Row,
    features: Iterable[Feature],
    *,
    model_path: str | None = None,
    extra: Iterable[str] = (),
) -> tuple[str, ...]:
    """Returns the command of a row, argument by argument.

    A feature that the row does not claim is switched off explicitly where vLLM could
    enable it by itself, so that the command tests what the row says and no more.

    Args:
        row: the claim.
        features: every feature of the matrix.
        model_path: a local copy of the checkpoint to serve under the checkpoint's name.
        extra: arguments that do not change what is tested, such as a port.
    """
    argv = ["vllm", "serve", model_path or row.checkpoint]
    if model_path is not None:
        argv += ["--served-model-name", row.checkpoint]
    for field, option in FIELD_OPTIONS.items():
        value = getattr(row, field)
        if value is not None and value != "auto":
            argv += [f"--{option}", str(value)]
    argv += _parallel_argv(row)
    claimed = set(row.features)
    for feature in sorted(features, key=lambda feature: feature.id):
        argv += feature.on if feature.id in claimed else feature.off
    for option in sorted(row.serve_args):
        argv += _option(option, row.serve_args[option])
    return (*argv, *extra)


def _parallel_argv(row: Row) -> Iterator[str]:
    parallel = row.parallel
    yield from (f"--{PARALLEL_OPTIONS['tp']}", str(parallel.tp))
    if parallel.dp > 1:
        yield from (f"--{PARALLEL_OPTIONS['dp']}", str(parallel.dp))
    if parallel.pp > 1:
        yield from (f"--{PARALLEL_OPTIONS['pp']}", str(parallel.pp))
    if parallel.ep:
        yield f"--{PARALLEL_OPTIONS['ep']}"


def _option(name: str, value: str | int | float | bool) -> list[str]:
    if value is True:
        return [f"--{name}"]
    if value is False:
        return [f"--no-{name}"]
    return [f"--{name}", value if isinstance(value, str) else json.dumps(value)]
