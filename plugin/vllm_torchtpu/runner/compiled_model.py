"""The model as the runner sees it: forward and logits, each one graph per bucket."""

from typing import Any

import torch
from torch import nn


class CompiledModel:
    """Wraps a vLLM model so that its logits are compiled as its forward is.

    Like vLLM's own CUDAGraphWrapper it stands in for the model and passes everything else through.
    vLLM compiles `forward` itself (CompilationMode.STOCK_TORCH_COMPILE); `compute_logits` it leaves
    eager, which here would be an op by op walk through the head's largest matmul.
    """

    def __init__(self, model: nn.Module, backend: str) -> None:
        self._model = model
        self._compute_logits = torch.compile(
            model.compute_logits, backend=backend, fullgraph=True, dynamic=False
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._model(*args, **kwargs)

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """Returns logits [rows, vocab] of hidden states [rows, hidden size]."""
        return self._compute_logits(hidden_states)

    def unwrap(self) -> nn.Module:
        """Returns vLLM's model."""
        return self._model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)
