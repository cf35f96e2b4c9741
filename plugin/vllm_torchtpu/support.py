"""What this platform refuses while the configuration is built, each in one sentence."""

from collections.abc import Iterator

from vllm.config import CacheConfig, ModelConfig, ParallelConfig, SchedulerConfig, VllmConfig

from vllm_torchtpu.errors import raise_all

_KV_CACHE_DTYPES = ("auto", "bfloat16", "float16", "float32")


def refuse_unsupported(config: VllmConfig) -> None:
    """Raises one TorchTpuError that names every unsupported option, or returns.

    Raises:
        TorchTpuError: One line per option: what was asked, why not, the nearest thing that works.
    """
    problems = list(_parallelism(config.parallel_config))
    problems += _features(config)
    problems += _cache(config.cache_config)
    problems += _scheduling(config.scheduler_config)
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
    if config.use_v2_model_runner:
        yield (
            "VLLM_USE_V2_MODEL_RUNNER: found 1, but vLLM's V2 runner needs Triton, which a TPU "
            "lacks; unset it for the V1 runner"
        )


def _cache(cache: CacheConfig) -> Iterator[str]:
    if cache.cache_dtype not in _KV_CACHE_DTYPES:
        yield (
            f"--kv-cache-dtype: found {cache.cache_dtype!r}, which is not supported on this "
            f"platform yet; use one of {', '.join(_KV_CACHE_DTYPES)}"
        )
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
    if model.is_multimodal_model and model.supports_multimodal_inputs:
        yield (
            f"{name}: takes images, video or audio, which are not supported on this platform yet; "
            "serve its text part with --language-model-only"
        )
    for has_it, what in (
        (model.is_moe, "has Mixture-of-Experts layers"),
        (model.use_mla, "uses multi-head latent attention (MLA)"),
        (model.is_hybrid, "has recurrent (Mamba or linear attention) layers"),
        (model.is_attention_free, "has no attention layers"),
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
