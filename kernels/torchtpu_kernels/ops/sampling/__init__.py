"""Draws the next token of every request from its logits."""

from torchtpu_kernels.ops.sampling.api import sample_tokens

__all__ = ["sample_tokens"]
