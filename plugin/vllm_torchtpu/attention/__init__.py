"""Attention backends, one file each; vLLM finds them through the platform."""
