"""The model as the runner sees it: forward and logits, each one graph per bucket."""

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import nn
from vllm.model_executor.models.interfaces_base import VllmModelForTextGeneration


class CompiledModel:
    """Wraps a vLLM model so that its logits are compiled as its forward is.

    Like vLLM's own CUDAGraphWrapper it stands in for the model and passes everything else through.
    vLLM compiles `forward` itself (CompilationMode.STOCK_TORCH_COMPILE); `compute_logits` it leaves
    eager, which here would be an op by op walk through the head's largest matmul.
    """

    def __init__(
        self, model: VllmModelForTextGeneration, backend: str | Callable[..., Any]
    ) -> None:
        self._model = model
        self._compute_logits = torch.compile(
            cast(Callable[..., torch.Tensor], model.compute_logits),
            backend=backend,
            fullgraph=True,
            dynamic=False,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the model's forward, through its own compiled graph."""
        return self.unwrap()(*args, **kwargs)

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """Returns logits [rows, vocab] of hidden states [rows, hidden size]."""
        return self._compute_logits(hidden_states)

    def unwrap(self) -> nn.Module:
        """Returns vLLM's model."""
        return cast(nn.Module, self._model)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)
