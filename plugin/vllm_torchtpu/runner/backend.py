"""The torch.compile backend of the virtual TPU: torch_tpu's, after one rewrite for XLA's CPU.

On a TPU XLA chooses the layouts of a matmul itself, so there the backend is plain "tpu".
"""

from typing import Any

import torch
from torch._dynamo.backends.registry import lookup_backend


def virtual_tpu(graph: torch.fx.GraphModule, inputs: list[torch.Tensor], **options: Any) -> Any:
    """Compiles a Dynamo graph for the virtual TPU."""
    _turn_linears_round(graph)
    return lookup_backend("tpu")(graph, inputs, **options)


def _turn_linears_round(graph: torch.fx.GraphModule) -> None:
    """Replaces float32 linear layers by the op that computes them faster."""
    from vllm_torchtpu.ops.linear import linear

    for node in graph.graph.nodes:
        if node.op == "call_function" and node.target is torch.nn.functional.linear:
            value = node.meta.get("example_value")
            if value is not None and value.dtype == torch.float32:
                node.target = linear
    graph.recompile()
