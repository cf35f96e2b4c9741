"""Every environment variable of this plugin: the one file that reads or writes the environment.

`python -m vllm_torchtpu.envs` prints docs/environment.md.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from vllm_torchtpu.errors import raise_all

DeviceChoice = Literal["auto", "tpu", "virtual"]
CompileGuard = Literal["warn", "raise"]


@dataclass(frozen=True)
class Settings:
    """The parsed values of all variables."""

    device: DeviceChoice
    virtual_memory_gib: float | None
    """Memory of one virtual TPU; None is a quarter of this host's RAM."""
    compile_guard: CompileGuard
    cache_dir: Path
    xla_cache_path: Path | None
    """Where compiled executables persist; None keeps none."""


@dataclass(frozen=True)
class Variable:
    """One environment variable: how it is documented and how it is parsed."""

    name: str
    field: str
    allowed: str
    default: str
    meaning: str
    parse: Callable[[str | None], Any]
    """Takes the raw value (None when unset); raises ValueError for a value it does not allow."""


def _one_of(choices: tuple[str, ...], default: str) -> Callable[[str | None], str]:
    def parse(raw: str | None) -> str:
        if raw is None or raw == "":
            return default
        if raw not in choices:
            raise ValueError(raw)
        return raw

    return parse


def _positive_gib(raw: str | None) -> float | None:
    if raw is None or raw == "":
        return None
    value = float(raw)
    if not 0 < value < float("inf"):
        raise ValueError(raw)
    return value


def _user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()


def _absolute(raw: str) -> Path:
    path = Path(raw).expanduser()
    if not path.is_absolute():
        raise ValueError(raw)
    return path


def _cache_dir(raw: str | None) -> Path:
    return _absolute(raw) if raw else _user_cache() / "vllm-torchtpu"


def _xla_cache_path(raw: str | None) -> Path | None:
    if raw == "":
        return None
    # The default is upstream's (`VLLM_XLA_CACHE_PATH` in vllm/envs.py).
    return _absolute(raw) if raw else _user_cache() / "vllm" / "xla_cache"


VARIABLES: tuple[Variable, ...] = (
    Variable(
        "TORCHTPU_DEVICE",
        "device",
        "`auto`, `tpu`, `virtual`",
        "`auto`",
        "Which device serves. `auto` is a TPU if there is one, else the virtual TPU if vLLM has no "
        "other device. `tpu` refuses to start without a TPU. `virtual` is always the virtual TPU.",
        _one_of(get_args(DeviceChoice), "auto"),
    ),
    Variable(
        "TORCHTPU_VIRTUAL_MEMORY_GIB",
        "virtual_memory_gib",
        "a number above 0",
        "a quarter of the host's RAM",
        "Memory of one virtual TPU, in GiB: what `gpu_memory_utilization` is a share of.",
        _positive_gib,
    ),
    Variable(
        "TORCHTPU_COMPILE_GUARD",
        "compile_guard",
        "`warn`, `raise`",
        "`warn`",
        "What a compilation after warm-up does: logs the shape once, or raises (for tests).",
        _one_of(get_args(CompileGuard), "warn"),
    ),
    Variable(
        "TORCHTPU_CACHE_DIR",
        "cache_dir",
        "an absolute path; `~` is expanded",
        "`$XDG_CACHE_HOME/vllm-torchtpu`, or `~/.cache/vllm-torchtpu`",
        "Where the built library of the virtual TPU lies.",
        _cache_dir,
    ),
    Variable(
        "VLLM_XLA_CACHE_PATH",
        "xla_cache_path",
        "an absolute path (`~` is expanded), or empty for no cache",
        "`$XDG_CACHE_HOME/vllm/xla_cache`, or `~/.cache/vllm/xla_cache`",
        "Where compiled executables persist between starts. The name and the default are vLLM's.",
        _xla_cache_path,
    ),
)


def load(environ: Mapping[str, str] | None = None) -> Settings:
    """Parses all variables, by default of this process.

    Raises:
        TorchTpuError: with one line per variable that has a value it does not allow.
    """
    environ = os.environ if environ is None else environ
    values, problems = {}, []
    for variable in VARIABLES:
        raw = environ.get(variable.name)
        try:
            values[variable.field] = variable.parse(raw)
        except ValueError:
            problems.append(
                f"{variable.name}: found {raw!r}; set it to {variable.allowed.replace('`', '')}, "
                f"or unset it for the default ({variable.default.replace('`', '')})"
            )
    raise_all(problems)
    return Settings(**values)


EXPORTED = {
    "TORCHTPU_DEVICE": "the decision of `auto`, so that child processes neither decide nor warn again",
    "TPU_LIBRARY_PATH": "the virtual TPU's library, which torch_tpu loads instead of libtpu",
    "TPU_SKIP_MDS_QUERY": "`1` for the virtual TPU: there is no metadata server to ask",
    "TORCH_DEVICE_BACKEND_AUTOLOAD": "`0` for the virtual TPU: child processes load torch_tpu when they need it",
    "TORCH_TPU_TIER3_COMPILATION_CACHE_ROOT": "torch_tpu's cache directory under `VLLM_XLA_CACHE_PATH`",
    "TORCH_TPU_TIER2_COMPILATION_CACHE": "that cache's name in shared memory",
    "TORCH_TPU_INTERNAL_TIER3_COMPILATION_CACHE_LOCAL_BACKUP_TASK": "`0`: no compilation beside a read",
    "XLA_FLAGS": "what you set, and for the virtual TPU a faster library for XLA's bfloat16 matmuls",
    "VLLM_WORKER_MULTIPROC_METHOD": "`spawn` unless it is set: torch_tpu does not survive a fork",
    "VLLM_WORKER_SHUTDOWN_TIMEOUT_SECONDS": "`30` unless it is set: an engine killed at once leaves streams open",
    "TF_CPP_MIN_LOG_LEVEL": "`1`, unless set: XLA and torch_tpu log warnings and errors only",
    "TORCHINDUCTOR_AUTOGRAD_CACHE": "`0`: torch's cache of compiled graphs does not see a JAX kernel change",
}
"""Variables of other libraries, and our own decision, that the plugin sets itself."""


def export(**variables: str) -> None:
    """Sets variables that `EXPORTED` declares for this process, its libraries and its children."""
    if undeclared := variables.keys() - EXPORTED:
        raise KeyError(f"envs.EXPORTED does not declare {sorted(undeclared)}")
    os.environ.update(variables)


def current(name: str) -> str | None:
    """The present value of another library's variable."""
    return os.environ.get(name)


def vllm_plugins() -> list[str] | None:
    """The names in vLLM's VLLM_PLUGINS; None when it is unset, which allows all."""
    raw = os.environ.get("VLLM_PLUGINS")
    return None if raw is None else raw.split(",")


def markdown() -> str:
    """The text of docs/environment.md."""
    lines = [
        "<!-- Generated by `python -m vllm_torchtpu.envs`; do not edit. -->",
        "# Environment variables",
        "",
        "Read once per process; a value that is not allowed stops the start with one sentence.",
        "",
        "| Variable | Values | Default | Meaning |",
        "|---|---|---|---|",
    ]
    lines += [f"| `{v.name}` | {v.allowed} | {v.default} | {v.meaning} |" for v in VARIABLES]
    lines += [
        "",
        "## Set by the plugin",
        "",
        "For its own process and its children; nothing here needs to be exported by hand.",
        "",
        "| Variable | Value |",
        "|---|---|",
    ]
    lines += [f"| `{name}` | {meaning} |" for name, meaning in EXPORTED.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(markdown(), end="")
