"""What the platform answers to vLLM, and the configuration that it leaves."""

import argparse
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from vllm.config import CompilationMode, CUDAGraphMode
from vllm.config.vllm import OptimizationLevel
from vllm.v1.attention.backends.registry import AttentionBackendEnum
from vllm_torchtpu import device, fit, memory, support
from vllm_torchtpu import platform as ours
from vllm_torchtpu.device import Device
from vllm_torchtpu.errors import TorchTpuError, show_sentences
from vllm_torchtpu.platform import TorchTpuPlatform

SELECTOR = {
    "head_size": 64,
    "dtype": torch.float32,
    "kv_cache_dtype": "auto",
    "block_size": 128,
    "use_mla": False,
    "has_sink": False,
    "use_sparse": False,
    "use_mm_prefix": False,
    "attn_type": "decoder",
}


@pytest.fixture
def selector():
    """A function that describes an attention layer as vLLM's selector does."""
    from vllm.v1.attention.selector import AttentionSelectorConfig

    known = {k: v for k, v in SELECTOR.items() if k in AttentionSelectorConfig._fields}
    return lambda **changes: AttentionSelectorConfig(**(known | changes))


# -- names and numbers


@pytest.mark.parametrize(
    ("kind", "name"), [("virtual", "virtual TPU"), ("tpu", "TPU"), (None, "TPU")]
)
def test_the_device_is_named_by_its_kind(monkeypatch, kind, name):
    found = Device(kind, "test") if kind else None
    monkeypatch.setattr(device, "resolve", lambda: found)
    assert TorchTpuPlatform.get_device_name() == name


def test_memory_is_the_device_s(monkeypatch):
    monkeypatch.setattr(memory, "total_bytes", lambda: 123)
    monkeypatch.setattr(memory, "used_bytes", lambda: 45)
    assert TorchTpuPlatform.get_device_total_memory() == 123
    assert TorchTpuPlatform.get_current_memory_usage() == 45.0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float16])
def test_models_run_in_the_three_float_dtypes(dtype):
    TorchTpuPlatform.check_if_supports_dtype(dtype)
    assert dtype in TorchTpuPlatform().supported_dtypes


@pytest.mark.parametrize("dtype", [torch.float64, torch.float8_e4m3fn])
def test_another_dtype_is_refused_with_the_allowed_ones(dtype):
    with pytest.raises(TorchTpuError, match=r"^--dtype: found .*; use one of bfloat16, float32"):
        TorchTpuPlatform.check_if_supports_dtype(dtype)


# -- attention


@pytest.mark.parametrize("selected", [None, AttentionBackendEnum.CUSTOM])
def test_our_attention_backend_is_chosen(selector, selected):
    path = TorchTpuPlatform.get_attn_backend_cls(selected, selector())
    assert path == "vllm_torchtpu.attention.paged.PagedAttentionBackend"


def test_another_attention_backend_is_refused(selector):
    with pytest.raises(TorchTpuError, match=r"^--attention-backend: found FLASH_ATTN.*; leave"):
        TorchTpuPlatform.get_attn_backend_cls(AttentionBackendEnum.FLASH_ATTN, selector())


@pytest.mark.parametrize("need", [{"use_mla": True}, {"has_sink": True}, {"use_sparse": True}])
def test_a_model_that_needs_other_attention_is_refused(selector, need):
    with pytest.raises(TorchTpuError, match=r"^attention: .*this model needs it; choose another"):
        TorchTpuPlatform.get_attn_backend_cls(None, selector(**need))


# -- the configuration


def _config(mode=CompilationMode.VLLM_COMPILE, *, async_scheduling=True):
    return SimpleNamespace(
        optimization_level=OptimizationLevel.O2,
        parallel_config=SimpleNamespace(worker_cls="auto"),
        scheduler_config=SimpleNamespace(async_scheduling=async_scheduling),
        compilation_config=SimpleNamespace(
            mode=mode,
            backend="",
            cudagraph_mode=CUDAGraphMode.FULL,
            cudagraph_capture_sizes=[1, 2],
            max_cudagraph_capture_size=2,
            splitting_ops=["an::op"],
        ),
    )


@pytest.fixture
def checks(monkeypatch) -> list[str]:
    """The checks that were asked, in order; none refuses."""
    asked: list[str] = []
    monkeypatch.setattr(support, "refuse_unsupported", lambda _, **__: asked.append("unsupported"))
    monkeypatch.setattr(fit, "refuse_what_cannot_fit", lambda _: asked.append("fit"))
    monkeypatch.setenv("VLLM_WORKER_MULTIPROC_METHOD", "")  # remembers what to restore
    monkeypatch.delenv("VLLM_WORKER_MULTIPROC_METHOD")
    return asked


def test_what_is_unsupported_is_refused_before_it_is_measured(checks):
    config = _config()
    TorchTpuPlatform.apply_config_platform_defaults(config)
    assert checks == ["unsupported"]
    TorchTpuPlatform.check_and_update_config(config)
    assert checks == ["unsupported", "fit"]


def test_one_graph_is_compiled_and_none_captured(checks):
    config = _config()
    TorchTpuPlatform.check_and_update_config(config)
    compilation = config.compilation_config
    assert compilation.mode == CompilationMode.STOCK_TORCH_COMPILE
    assert compilation.backend == TorchTpuPlatform.get_compile_backend()
    assert compilation.cudagraph_mode == CUDAGraphMode.NONE
    assert compilation.cudagraph_capture_sizes == []
    assert compilation.splitting_ops == []
    assert config.parallel_config.worker_cls == "vllm_torchtpu.worker.TorchTpuWorker"
    assert not config.scheduler_config.async_scheduling


def test_eager_stays_eager(checks):
    config = _config(CompilationMode.NONE)
    TorchTpuPlatform.check_and_update_config(config)
    assert config.compilation_config.mode == CompilationMode.NONE
    assert config.compilation_config.backend == ""


@pytest.mark.parametrize(("chosen", "expected"), [(None, "spawn"), ("fork", "fork")])
def test_workers_are_spawned_unless_the_user_says_otherwise(checks, monkeypatch, chosen, expected):
    if chosen is not None:
        monkeypatch.setenv("VLLM_WORKER_MULTIPROC_METHOD", chosen)
    TorchTpuPlatform.check_and_update_config(_config())
    assert os.environ["VLLM_WORKER_MULTIPROC_METHOD"] == expected


def test_a_refusal_leaves_the_configuration_alone(monkeypatch):
    def refuse(_):
        raise TorchTpuError("a: b; c")

    monkeypatch.setattr(fit, "refuse_what_cannot_fit", refuse)
    config = _config()
    with pytest.raises(TorchTpuError):
        TorchTpuPlatform.check_and_update_config(config)
    assert config.parallel_config.worker_cls == "auto"


def test_the_api_server_s_process_never_loads_torch_tpu():
    script = (
        "import sys, vllm.config\n"
        "from vllm.platforms import current_platform\n"
        "current_platform.get_device_total_memory(); current_platform.get_device_name()\n"
        "assert current_platform.device_type == 'tpu'\n"
        "print([m for m in ('torch_tpu', 'jax') if m in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=os.environ, capture_output=True, text=True, timeout=100
    )
    assert done.stdout.splitlines()[-1:] == ["[]"], done.stderr[-2000:]


# -- sentences instead of tracebacks


@pytest.fixture
def hook(monkeypatch) -> list[BaseException]:
    """The errors that reach the hook which was there before ours."""
    reached: list[BaseException] = []
    monkeypatch.setattr(sys, "excepthook", lambda _, error, __: reached.append(error))
    return reached


def test_our_errors_end_a_program_with_their_sentence(hook, capsys):
    show_sentences()
    sys.excepthook(TorchTpuError, TorchTpuError("a: b; c"), None)
    assert capsys.readouterr().err == "a: b; c\n"
    assert hook == []


def test_every_other_error_is_shown_as_before(hook, capsys):
    show_sentences()
    error = ValueError("x")
    sys.excepthook(ValueError, error, None)
    assert hook == [error]
    assert capsys.readouterr().err == ""


def test_the_hook_is_installed_once(hook):
    show_sentences()
    first = sys.excepthook
    show_sentences()
    assert sys.excepthook is first


def test_the_platform_installs_the_hook(hook):
    TorchTpuPlatform()
    assert getattr(sys.excepthook, "_shows_sentences", False)
    assert ours.TorchTpuPlatform.device_type == "tpu"


def test_the_command_line_s_default_is_synchronous_scheduling(monkeypatch):
    monkeypatch.setattr(TorchTpuPlatform, "_has_command_line", False)
    TorchTpuPlatform.pre_register_and_update()
    assert not TorchTpuPlatform._has_command_line
    parser = argparse.ArgumentParser()
    parser.add_argument("--async-scheduling", action=argparse.BooleanOptionalAction, default=None)
    TorchTpuPlatform.pre_register_and_update(parser)
    assert TorchTpuPlatform._has_command_line
    assert parser.parse_args([]).async_scheduling is False
    assert parser.parse_args(["--async-scheduling"]).async_scheduling is True
