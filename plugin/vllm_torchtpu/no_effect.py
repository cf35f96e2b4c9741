"""Options of vLLM that change nothing here: whoever sets one is told so instead of ignored."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from vllm.config import (
    CacheConfig,
    CompilationConfig,
    CompilationMode,
    CUDAGraphMode,
    LoadConfig,
    ModelConfig,
    ObservabilityConfig,
    ParallelConfig,
    VllmConfig,
)
from vllm.config.compilation import PassConfig

# Fields that vLLM itself fills in, by its other options and ours.
_SET_BY_VLLM = {
    "enable_flashinfer_autotune",
    "enable_jit_warmup",
    "ir_op_priority",
    "sparse_mla_prefill_workspace_factor",
}
# Judged by themselves, or obeyed.
_COMPILATION_WITH_EFFECT = {"mode", "backend", "pass_config"}
# What is true here anyway; vLLM, and this platform, set these values too.
_TRUE_ANYWAY: dict[str, tuple[Any, ...]] = {
    "cudagraph_mode": (CUDAGraphMode.NONE,),
    "cudagraph_capture_sizes": ([],),
    "max_cudagraph_capture_size": (0,),
    "splitting_ops": ([],),
    "compile_sizes": ([],),
    "use_inductor_graph_partition": (False,),
    "fast_moe_cold_start": (False,),
    "ir_enable_torch_wrap": (False, True),
    # The two words name vLLM's own kernels and PyTorch's; here both are PyTorch's.
    "custom_ops": (["all"], ["none"]),
}
# The option, the class of its part of the configuration (which holds the default), its field.
_SINGLE = (
    ("--swa-bounded-replay", CacheConfig, "swa_bounded_replay"),
    ("--pt-load-map-location", LoadConfig, "pt_load_map_location"),
    ("--enable-nccl-comm-suspend", ModelConfig, "enable_nccl_comm_suspend"),
    ("--cudagraph-metrics", ObservabilityConfig, "cudagraph_metrics"),
    ("--enable-layerwise-nvtx-tracing", ObservabilityConfig, "enable_layerwise_nvtx_tracing"),
    ("--enable-hc-sp", ParallelConfig, "enable_hc_sp"),
)


def options_without_effect(config: VllmConfig) -> Iterator[str]:
    """Yields a sentence for each option that was set and would change nothing.

    Args:
        config: As the user left it, before vLLM fills in its defaults.
    """
    for option, part in (
        ("--attention-config", config.attention_config),
        ("--kernel-config", config.kernel_config),
    ):
        for name, value in _changed(part, type(part)(), skip=_SET_BY_VLLM):
            yield _sentence(f"{option}: {name}", value)
    yield from _compilation(
        config.compilation_config, config.scheduler_config.max_num_batched_tokens
    )
    parts = {
        CacheConfig: config.cache_config,
        LoadConfig: config.load_config,
        ModelConfig: config.model_config,
        ObservabilityConfig: config.observability_config,
        ParallelConfig: config.parallel_config,
    }
    for option, kind, name in _SINGLE:
        value = getattr(parts[kind], name, None)
        if value not in (None, getattr(kind, name)):
            yield f"{option}: found {_shown(value)}, which has no effect on this platform; leave it out"


def _compilation(compilation: CompilationConfig, max_step_tokens: int) -> Iterator[str]:
    from vllm.platforms import current_platform

    option = "--compilation-config"
    if compilation.backend not in ("", "tpu", current_platform.get_compile_backend()):
        yield (
            f"{option}: found backend {compilation.backend!r}, but graphs are compiled by torch_tpu "
            "here; leave it out, or pass --enforce-eager"
        )
    if compilation.mode in (CompilationMode.DYNAMO_TRACE_ONCE, CompilationMode.VLLM_COMPILE):
        yield (
            f"{option}: found mode {compilation.mode.value} ({compilation.mode.name}), but each "
            "bucket is compiled by torch_tpu here, which is mode 1; leave it out"
        )
    default = type(compilation)()
    for name, value in _changed(compilation, default, skip=_COMPILATION_WITH_EFFECT):
        is_vllms = name == "compile_ranges_endpoints" and value == [max_step_tokens]
        if not is_vllms and value not in _TRUE_ANYWAY.get(name, ()):
            yield _sentence(f"{option}: {name}", value)
    for name, value in _changed(compilation.pass_config, PassConfig(), skip=set()):
        if value is not False:
            yield _sentence(f"{option}: pass_config.{name}", value)


def _changed(part: Any, default: Any, *, skip: set[str]) -> Iterator[tuple[str, Any]]:
    """Yields the fields a user may set whose value is not the default."""
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if field.init and field.name not in skip and value != getattr(default, field.name):
            yield field.name, value


def _sentence(where: str, value: Any) -> str:
    return f"{where} is {_shown(value)}, which has no effect on this platform; leave it out"


def _shown(value: Any) -> str:
    return repr(getattr(value, "name", value))
