"""Keeps compiled executables between starts: torch_tpu's tier-3 cache under VLLM_XLA_CACHE_PATH."""


def configure(kind: str) -> None:
    """Names the cache's directory to torch_tpu."""
