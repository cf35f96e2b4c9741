"""The settings of every engine that these tests start: strict, offline and on the virtual TPU."""

import os
from pathlib import Path

import pytest

# Set while pytest collects, before any test module imports vLLM.
os.environ.update(
    TORCHTPU_DEVICE="virtual",
    TORCHTPU_COMPILE_GUARD="raise",
    TORCHTPU_VIRTUAL_MEMORY_GIB="1",
    TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    HF_HUB_OFFLINE="1",
    VLLM_WORKER_MULTIPROC_METHOD="spawn",
    VLLM_NO_USAGE_STATS="1",
    # The poison test reaches into its engine's worker.
    VLLM_ALLOW_INSECURE_SERIALIZATION="1",
)


@pytest.fixture(scope="session", autouse=True)
def _shared_executables(pytestconfig: pytest.Config) -> None:
    """Lets engines of equal shapes share their compilations, over runs too."""
    path: Path = pytestconfig.cache.mkdir("executables")
    path.chmod(0o700)
    os.environ["VLLM_XLA_CACHE_PATH"] = str(path)
