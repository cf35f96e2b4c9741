"""What this platform refuses while the configuration is built, each in one sentence."""

from collections.abc import Iterator

from vllm.config import (
    CacheConfig,
    LoadConfig,
    ModelConfig,
    ParallelConfig,
    SchedulerConfig,
    VllmConfig,
)

from vllm_torchtpu.errors import raise_all
from vllm_torchtpu.no_effect import options_without_effect

# vLLM's attention by the Transformers library names its layers; others are recurrent.
_ATTENTION_LAYERS = {"attention", "full_attention", "sliding_attention"}
_FOREIGN_LOAD_FORMATS = ("bitsandbytes", "gguf")
_KV_CACHE_DTYPES = ("auto", "bfloat16", "float16")


def refuse_unsupported(config: VllmConfig, *, async_is_a_choice: bool = False) -> None:
    """Raises one TorchTpuError that names every unsupported option, or returns.

    Args:
        config: Before vLLM fills in its defaults, so that what the user chose can be told.
        async_is_a_choice: Whether asynchronous scheduling is on only if the user asked for it.

    Raises:
        TorchTpuError: One line per option: what was asked, why not, the nearest thing that works.
    """
    problems = list(_parallelism(config.parallel_config))
    problems += _features(config)
    problems += options_without_effect(config)
    problems += _loading(config.load_config)
    problems += _cache(config.cache_config)
    problems += _scheduling(config.scheduler_config)
    if async_is_a_choice and config.scheduler_config.async_scheduling:
        problems.append(
            "--async-scheduling: not supported on this platform yet; leave it out: the text is the same"
        )
    if config.model_config is not None:
        problems += _model(config.model_config)
    raise_all(problems)


def _parallelism(parallel: ParallelConfig) -> Iterator[str]:
    for option, size in (
        ("--tensor-parallel-size", parallel.tensor_parallel_size),
        ("--pipeline-parallel-size", parallel.pipeline_parallel_size),
        ("--data-parallel-size", parallel.data_parallel_size),
        ("--prefill-context-parallel-size", parallel.prefill_context_parallel_size),
        ("--decode-context-parallel-size", parallel.decode_context_parallel_size),
    ):
        if size > 1:
            yield f"{option}: found {size}, but models run on one device so far; set it to 1"
    for option, is_set in (
        ("--enable-expert-parallel", parallel.enable_expert_parallel),
        ("--enable-eplb", parallel.enable_eplb),
        ("--enable-dbo", parallel.enable_dbo),
        ("--enable-elastic-ep", parallel.enable_elastic_ep),
    ):
        if is_set:
            yield f"{option}: needs several devices, and models run on one so far; leave it out"
    if parallel.distributed_executor_backend not in (None, "uni", "mp"):
        yield (
            f"--distributed-executor-backend: found {parallel.distributed_executor_backend!r}, but "
            "models run in one process so far; leave it out"
        )
    if parallel.assigned_physical_gpu_ids:
        yield "--device-ids: models run on the first device so far; leave it out"
    if parallel.worker_cls not in ("auto", "vllm_torchtpu.worker.TorchTpuWorker"):
        yield (
            f"--worker-cls: found {parallel.worker_cls!r}, which cannot drive a TPU; leave it out"
        )


def _features(config: VllmConfig) -> Iterator[str]:
    for option, value, instead in (
        ("--enable-lora", config.lora_config, "serve a checkpoint with the adapter merged in"),
        ("--speculative-config", config.speculative_config, "leave it out: the text is the same"),
        ("--kv-transfer-config", config.kv_transfer_config, "leave it out"),
        ("--ec-transfer-config", config.ec_transfer_config, "leave it out"),
        ("--weight-transfer-config", config.weight_transfer_config, "leave it out"),
        ("--watermark-config", config.watermark_config, "leave it out"),
        ("--diffusion-config", config.diffusion_config, "leave it out"),
    ):
        if value is not None:
            yield f"{option}: not supported on this platform yet; {instead}"
    if config.offload_config.uva.cpu_offload_gb > 0:
        yield "--cpu-offload-gb: not supported on this platform; leave it out"
    if config.offload_config.prefetch.offload_group_size > 0:
        yield "--offload-group-size: not supported on this platform; leave it out"
    if config.additional_config:
        yield "--additional-config: this platform reads nothing from it; leave it out"
    if config.profiler_config.profiler == "cuda":
        yield "--profiler-config: found profiler 'cuda', which a TPU lacks; use 'torch'"
    if config.use_v2_model_runner:
        yield (
            "VLLM_USE_V2_MODEL_RUNNER: found 1, but vLLM's V2 runner needs Triton, which a TPU "
            "lacks; unset it for the V1 runner"
        )


def _loading(load: LoadConfig) -> Iterator[str]:
    if load.load_format in _FOREIGN_LOAD_FORMATS:
        yield (
            f"--load-format: found {load.load_format!r}, which holds quantised weights that this "
            "platform does not support yet; use a safetensors checkpoint"
        )


def _cache(cache: CacheConfig) -> Iterator[str]:
    if cache.cache_dtype not in _KV_CACHE_DTYPES:
        yield (
            f"--kv-cache-dtype: found {cache.cache_dtype!r}, which is not supported on this "
            f"platform yet; use one of {', '.join(_KV_CACHE_DTYPES)}"
        )
    if cache.kv_cache_dtype_skip_layers:
        yield "--kv-cache-dtype-skip-layers: not supported on this platform; leave it out"
    if cache.kv_sharing_fast_prefill:
        yield "--kv-sharing-fast-prefill: not supported on this platform yet; leave it out"
    if cache.kv_offloading_size is not None:
        yield "--kv-offloading-size: not supported on this platform yet; leave it out"


def _scheduling(scheduler: SchedulerConfig) -> Iterator[str]:
    if scheduler.runner_type != "generate":
        yield (
            f"--runner: found {scheduler.runner_type!r}, but only text generation is supported on "
            "this platform so far; use a generative model"
        )


def _model(model: ModelConfig) -> Iterator[str]:
    name = f"model {model.model!r}"
    if model.quantization is not None:
        yield (
            f"{name}: is quantised by {model.quantization!r}, which is not supported on this "
            "platform yet; use an unquantised (bfloat16 or float32) checkpoint"
        )
    if (
        model.is_multimodal_model
        and model.supports_multimodal_inputs
        and not model.is_encoder_decoder
    ):
        yield (
            f"{name}: takes images, video or audio, which are not supported on this platform yet; "
            "serve its text part with --language-model-only"
        )
    for has_it, what in (
        (model.is_moe, "has Mixture-of-Experts layers"),
        (model.use_mla, "uses multi-head latent attention (MLA)"),
        (
            not model.is_attention_free
            and (model.is_hybrid or not _layer_types(model) <= _ATTENTION_LAYERS),
            "has recurrent (Mamba or linear attention) layers",
        ),
        (model.is_attention_free, "has no attention layers"),
        (_has_alibi(model), "biases attention by distance (ALiBi)"),
        (_has_shared_kv(model), "shares KV caches between layers"),
        (model.is_encoder_decoder, "is an encoder-decoder model"),
    ):
        if has_it:
            yield (
                f"{name}: {what}, which is not supported on this platform yet; use a dense "
                "decoder such as Llama, Qwen3 or Gemma 3"
            )
    for option, is_set in (
        ("--enable-prompt-embeds", model.enable_prompt_embeds),
        ("--enable-sleep-mode", model.enable_sleep_mode),
        ("--return-sampling-mask", model.return_sampling_mask),
        ("--enable-trace-replay", model.enable_trace_replay),
    ):
        if is_set:
            yield f"{option}: not supported on this platform yet; leave it out"


def _has_alibi(model: ModelConfig) -> bool:
    text = model.hf_text_config
    return bool(getattr(text, "alibi", False)) or getattr(text, "model_type", "") == "bloom"


def _has_shared_kv(model: ModelConfig) -> bool:
    return bool(getattr(model.hf_text_config, "num_kv_shared_layers", 0))


def _layer_types(model: ModelConfig) -> set[str]:
    return set(getattr(model.hf_text_config, "layer_types", None) or ())
