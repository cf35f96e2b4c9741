"""Each unsupported option is refused by itself, and all of them at once."""

from types import SimpleNamespace

import pytest
from vllm.config import AttentionConfig, CompilationConfig, CompilationMode, KernelConfig
from vllm_torchtpu.errors import TorchTpuError
from vllm_torchtpu.support import refuse_unsupported

SIZES = {
    "tensor_parallel_size": "--tensor-parallel-size",
    "pipeline_parallel_size": "--pipeline-parallel-size",
    "data_parallel_size": "--data-parallel-size",
    "prefill_context_parallel_size": "--prefill-context-parallel-size",
    "decode_context_parallel_size": "--decode-context-parallel-size",
}
SWITCHES = {
    "enable_expert_parallel": "--enable-expert-parallel",
    "enable_eplb": "--enable-eplb",
    "enable_dbo": "--enable-dbo",
    "enable_elastic_ep": "--enable-elastic-ep",
}
CONFIGS = ("lora", "speculative", "kv_transfer", "ec_transfer", "weight_transfer")
CONFIGS += ("watermark", "diffusion")
MODEL_OPTIONS = {
    "enable_prompt_embeds": "--enable-prompt-embeds",
    "enable_sleep_mode": "--enable-sleep-mode",
    "return_sampling_mask": "--return-sampling-mask",
    "enable_trace_replay": "--enable-trace-replay",
}
MODEL_KINDS = {
    "is_moe": "Mixture-of-Experts",
    "use_mla": "latent attention",
    "is_hybrid": "recurrent",
    "is_attention_free": "no attention layers",
    "is_encoder_decoder": "encoder-decoder",
}


class _Supported(SimpleNamespace):
    """A part of the configuration in which whatever is not given is off."""

    def __getattr__(self, name: str):
        return None


def _config(**changes) -> SimpleNamespace:
    """A configuration that is supported; changes are written `part__field`."""
    parts = {
        "parallel": _Supported(worker_cls="auto", **dict.fromkeys(SIZES, 1)),
        "cache": _Supported(cache_dtype="auto"),
        "scheduler": _Supported(runner_type="generate"),
        "model": _Supported(model="some/model"),
        "uva": _Supported(cpu_offload_gb=0),
        "prefetch": _Supported(offload_group_size=0),
        "attention": AttentionConfig(),
        "kernel": KernelConfig(),
        "compilation": CompilationConfig(),
        "load": _Supported(load_format="auto"),
        "profiler": _Supported(),
    }
    top = {}
    for name, value in changes.items():
        part, _, field = name.partition("__")
        if field:
            setattr(parts[part], field, value)
        else:
            top[name] = value
    offload = _Supported(uva=parts.pop("uva"), prefetch=parts.pop("prefetch"))
    configs = {f"{name}_config": part for name, part in parts.items()}
    return _Supported(**configs, offload_config=offload, **top)


def _refusals(**changes) -> list[str]:
    with pytest.raises(TorchTpuError) as refused:
        refuse_unsupported(_config(**changes))
    return str(refused.value).split("\n")


def test_a_plain_configuration_passes():
    refuse_unsupported(_config())


def test_a_configuration_without_a_model_passes():
    config = _config()
    config.model_config = None
    refuse_unsupported(config)


@pytest.mark.parametrize(("field", "option"), SIZES.items())
def test_several_devices_are_refused(field, option):
    (line,) = _refusals(**{f"parallel__{field}": 2})
    assert line == f"{option}: found 2, but models run on one device so far; set it to 1"


@pytest.mark.parametrize(("field", "option"), SWITCHES.items())
def test_what_needs_several_devices_is_refused(field, option):
    (line,) = _refusals(**{f"parallel__{field}": True})
    assert line.startswith(f"{option}: ")


@pytest.mark.parametrize("name", CONFIGS)
def test_a_feature_is_refused_by_its_configuration(name):
    (line,) = _refusals(**{f"{name}_config": object()})
    assert "not supported on this platform yet; " in line
    assert line.startswith("--")


@pytest.mark.parametrize(("field", "option"), MODEL_OPTIONS.items())
def test_a_model_option_is_refused(field, option):
    (line,) = _refusals(**{f"model__{field}": True})
    assert line.startswith(f"{option}: ")


@pytest.mark.parametrize(("field", "words"), MODEL_KINDS.items())
def test_a_kind_of_model_is_refused_by_name(field, words):
    (line,) = _refusals(**{f"model__{field}": True})
    assert line.startswith("model 'some/model': ")
    assert words in line.split(";")[0]


@pytest.mark.parametrize("dtype", ["fp8", "fp8_e5m2", "int8", "nvfp4"])
def test_a_quantised_cache_is_refused_with_the_allowed_dtypes(dtype):
    (line,) = _refusals(cache__cache_dtype=dtype)
    assert line.startswith(f"--kv-cache-dtype: found '{dtype}'")
    assert line.endswith("use one of auto, bfloat16, float16")


@pytest.mark.parametrize("dtype", ["auto", "bfloat16", "float16"])
def test_an_unquantised_cache_passes(dtype):
    refuse_unsupported(_config(cache__cache_dtype=dtype))


@pytest.mark.parametrize(
    ("change", "option"),
    [
        ({"cache__kv_sharing_fast_prefill": True}, "--kv-sharing-fast-prefill"),
        ({"cache__kv_offloading_size": 0.5}, "--kv-offloading-size"),
        ({"uva__cpu_offload_gb": 0.1}, "--cpu-offload-gb"),
        ({"parallel__worker_cls": "a.Worker"}, "--worker-cls"),
        ({"scheduler__runner_type": "pooling"}, "--runner"),
        ({"model__quantization": "awq"}, "model 'some/model'"),
        ({"use_v2_model_runner": True}, "VLLM_USE_V2_MODEL_RUNNER"),
        ({"parallel__distributed_executor_backend": "ray"}, "--distributed-executor-backend"),
        ({"parallel__assigned_physical_gpu_ids": [1]}, "--device-ids"),
        ({"prefetch__offload_group_size": 2}, "--offload-group-size"),
        ({"additional_config": {"a": 1}}, "--additional-config"),
        ({"profiler__profiler": "cuda"}, "--profiler-config"),
        ({"attention__flash_attn_version": 3}, "--attention-config"),
        ({"kernel__linear_backend": "cutlass"}, "--kernel-config"),
        ({"compilation__backend": "inductor"}, "--compilation-config"),
        ({"compilation__mode": CompilationMode.DYNAMO_TRACE_ONCE}, "--compilation-config"),
        ({"load__load_format": "gguf"}, "--load-format"),
        ({"cache__kv_cache_dtype_skip_layers": ["0"]}, "--kv-cache-dtype-skip-layers"),
        *(
            ({"model__hf_text_config": SimpleNamespace(**fact)}, "model 'some/model'")
            for fact in (
                {"layer_types": ["full_attention", "linear_attention"]},
                {"alibi": True},
                {"model_type": "bloom"},
                {"num_kv_shared_layers": 2},
            )
        ),
    ],
    ids=str,
)
def test_other_options_are_refused(change, option):
    (line,) = _refusals(**change)
    assert line.startswith(f"{option}: ")


def test_asynchronous_scheduling_is_refused_where_the_user_chose_it():
    config = _config(scheduler__async_scheduling=True)
    refuse_unsupported(config)
    with pytest.raises(TorchTpuError, match=r"^--async-scheduling: "):
        refuse_unsupported(config, async_is_a_choice=True)


def test_a_multimodal_model_passes_as_text_only():
    refuse_unsupported(_config(model__is_multimodal_model=True))
    both = {"model__is_multimodal_model": True, "model__supports_multimodal_inputs": True}
    assert "--language-model-only" in _refusals(**both)[0]


def test_our_own_worker_may_be_named():
    refuse_unsupported(_config(parallel__worker_cls="vllm_torchtpu.worker.TorchTpuWorker"))


def test_all_problems_are_reported_at_once_each_with_a_remedy():
    lines = _refusals(
        parallel__tensor_parallel_size=8,
        lora_config=object(),
        cache__cache_dtype="fp8",
        scheduler__runner_type="pooling",
        model__is_moe=True,
    )
    assert len(lines) == 5
    assert all(line.count("; ") == 1 and ": " in line for line in lines)
