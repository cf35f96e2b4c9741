"""Keeps what torch_tpu says at every start from the user, and nothing that tells of an error."""

import contextlib
import ctypes
import importlib.util
import io
import logging
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from vllm_torchtpu import envs

# Said by torch_tpu of environment variables that we set.
_VARIABLES_WARNING = (
    r"<TorchTpu/ApiStage/ExperimentalApi/> the (TORCH_TPU_TIER\d_COMPILATION_CACHE|XLA_FLAGS)"
)
_MALLOC_WARNING = r"<TorchTpu/Performance/TcMalloc/>"

_NATIVE_LIBRARY = "csrc/common/libxla_base.so"
# absl::SetMinLogLevel(absl::LogSeverityAtLeast) of that library's own copy of Abseil.
_SET_MIN_LOG_LEVEL = "_ZN4absl12lts_2026052614SetMinLogLevelENS0_18LogSeverityAtLeastE"
_WARNINGS = 1

logger = logging.getLogger("vllm.torchtpu")


def native_log() -> None:
    """Makes XLA's and torch_tpu's native libraries, here and in children, log warnings and up.

    Does nothing if the user has chosen a level, or vLLM logs at level DEBUG.
    """
    if envs.current("TF_CPP_MIN_LOG_LEVEL") or logger.isEnabledFor(logging.DEBUG):
        return
    envs.export(TF_CPP_MIN_LOG_LEVEL=str(_WARNINGS))
    if "torch_tpu" not in sys.modules:
        return
    # torch_tpu's library is loaded and has read the variable already.
    spec = importlib.util.find_spec("torch_tpu")
    if spec is not None and spec.origin is not None:
        with contextlib.suppress(OSError, AttributeError):
            library = ctypes.CDLL(str(Path(spec.origin).parent / _NATIVE_LIBRARY))
            getattr(library, _SET_MIN_LOG_LEVEL)(_WARNINGS)


@contextlib.contextmanager
def startup(virtual: bool) -> Iterator[None]:
    """Holds back what torch_tpu prints and warns inside the block, and shows it if the block raises."""
    if logger.isEnabledFor(logging.DEBUG):
        yield
        return
    warnings.filterwarnings("ignore", message=_VARIABLES_WARNING)
    if virtual:  # on a TPU the allocator matters, and torch_tpu's advice holds
        warnings.filterwarnings("ignore", message=_MALLOC_WARNING)
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed):
            yield
    except BaseException:
        sys.stderr.write(printed.getvalue())
        raise
