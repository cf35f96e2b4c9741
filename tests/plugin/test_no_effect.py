"""Options that change nothing on this platform are refused; what vLLM sets by itself is not."""

from types import SimpleNamespace

import pytest
from vllm.config import (
    AttentionConfig,
    CompilationConfig,
    CompilationMode,
    CUDAGraphMode,
    KernelConfig,
)
from vllm.config.compilation import DynamicShapesConfig, PassConfig
from vllm.config.vllm import OptimizationLevel
from vllm_torchtpu.no_effect import options_without_effect
from vllm_torchtpu.platform import TorchTpuPlatform


def _found(compilation=None, **parts: SimpleNamespace) -> list[str]:
    known = dict.fromkeys(
        f"{name}_config" for name in ("cache", "load", "model", "observability", "parallel")
    )
    known |= {f"{name}_config": part for name, part in parts.items()}
    return list(
        options_without_effect(
            SimpleNamespace(
                attention_config=AttentionConfig(),
                kernel_config=KernelConfig(),
                compilation_config=compilation or CompilationConfig(),
                scheduler_config=SimpleNamespace(max_num_batched_tokens=2048),
                **known,
            )
        )
    )


def test_the_defaults_pass():
    assert _found() == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cudagraph_mode", CUDAGraphMode.FULL),
        ("cudagraph_mode", CUDAGraphMode.PIECEWISE),
        ("cudagraph_capture_sizes", [1, 2]),
        ("max_cudagraph_capture_size", 16),
        ("cudagraph_num_of_warmups", 1),
        ("cudagraph_copy_inputs", True),
        ("custom_ops", ["+rms_norm"]),
        ("custom_ops", ["none", "+rms_norm"]),
        ("splitting_ops", ["an::op"]),
        ("compile_sizes", [4]),
        ("compile_ranges_endpoints", [4]),
        ("inductor_compile_config", {"max_autotune": True}),
        ("use_inductor_graph_partition", True),
        ("compile_mm_encoder", True),
        ("cache_dir", "somewhere"),
        ("dynamic_shapes_config", DynamicShapesConfig(evaluate_guards=True)),
    ],
)
def test_a_field_of_the_compilation_configuration_is_named(name, value):
    (line,) = _found(CompilationConfig(**{name: value}))
    assert line.startswith(f"--compilation-config: {name} is ")
    assert line.endswith("; leave it out")


@pytest.mark.parametrize("name", ["fuse_norm_quant", "fuse_act_quant"])
def test_a_graph_pass_is_named(name):
    (line,) = _found(CompilationConfig(pass_config=PassConfig(**{name: True})))
    assert line.startswith(f"--compilation-config: pass_config.{name} is True")


@pytest.mark.parametrize(
    "mode", [CompilationMode.DYNAMO_TRACE_ONCE, CompilationMode.VLLM_COMPILE], ids=str
)
def test_a_mode_that_is_not_what_runs_is_refused(mode):
    (line,) = _found(CompilationConfig(mode=mode))
    assert line.startswith(f"--compilation-config: found mode {mode.value} ({mode.name})")


@pytest.mark.parametrize("mode", [CompilationMode.NONE, CompilationMode.STOCK_TORCH_COMPILE])
def test_a_mode_that_runs_passes(mode):
    assert _found(CompilationConfig(mode=mode)) == []


@pytest.mark.parametrize(
    ("part", "field", "value", "option"),
    [
        ("cache", "swa_bounded_replay", False, "--swa-bounded-replay"),
        ("load", "pt_load_map_location", "cuda", "--pt-load-map-location"),
        ("model", "enable_nccl_comm_suspend", True, "--enable-nccl-comm-suspend"),
        ("observability", "cudagraph_metrics", True, "--cudagraph-metrics"),
        ("observability", "enable_layerwise_nvtx_tracing", True, "--enable-layerwise-nvtx-tracing"),
        ("parallel", "enable_hc_sp", True, "--enable-hc-sp"),
    ],
)
def test_a_single_option_is_named(part, field, value, option):
    (line,) = _found(**{part: SimpleNamespace(**{field: value})})
    assert line == f"{option}: found {value!r}, which has no effect on this platform; leave it out"


def test_what_the_platform_leaves_passes_when_vllm_copies_the_configuration(monkeypatch):
    """vLLM builds configurations of parts of a model from the finished one, by the same checks."""
    from vllm_torchtpu import fit

    monkeypatch.setattr(fit, "refuse_what_cannot_fit", lambda _: None)
    compilation = CompilationConfig(mode=CompilationMode.VLLM_COMPILE)
    compilation.custom_ops = ["all"]
    compilation.cudagraph_mode = CUDAGraphMode.FULL
    compilation.pass_config = PassConfig(fuse_norm_quant=True)
    config = SimpleNamespace(
        optimization_level=OptimizationLevel.O2,
        parallel_config=SimpleNamespace(worker_cls="auto"),
        scheduler_config=SimpleNamespace(async_scheduling=False),
        compilation_config=compilation,
    )
    monkeypatch.setenv("VLLM_WORKER_MULTIPROC_METHOD", "spawn")
    monkeypatch.setenv("VLLM_WORKER_SHUTDOWN_TIMEOUT_SECONDS", "30")
    TorchTpuPlatform.check_and_update_config(config)
    assert _found(config.compilation_config) == []
