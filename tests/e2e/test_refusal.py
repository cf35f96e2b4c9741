"""What is not supported is refused while the configuration is built, in one sentence each.

No engine starts here: one process builds many configurations, and two run the real `vllm serve`.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.server import plain_environment

pytestmark = pytest.mark.slow

SENTENCE = re.compile(r"[^\n:]+: [^\n]+; [^\n]+")
SHAPE = {
    "vocab_size": 512,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "dtype": "bfloat16",
}
LATENT = {
    "kv_lora_rank": 32,
    "q_lora_rank": None,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 16,
    "v_head_dim": 16,
}
MODELS = {
    "moe": {
        "architectures": ["Qwen3MoeForCausalLM"],
        "model_type": "qwen3_moe",
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 64,
        "head_dim": 32,
    },
    "mla": {
        "architectures": ["DeepseekV2ForCausalLM"],
        "model_type": "deepseek_v2",
        "n_routed_experts": 4,
        "first_k_dense_replace": 2,
        **LATENT,
    },
    "mamba": {
        "architectures": ["MambaForCausalLM"],
        "model_type": "mamba",
        "state_size": 16,
        "conv_kernel": 4,
        "expand": 2,
    },
    "hybrid": {
        "architectures": ["Lfm2ForCausalLM"],
        "model_type": "lfm2",
        "layer_types": ["conv", "full_attention"],
        "conv_L_cache": 3,
    },
    "embedding": {"architectures": ["BertModel"], "model_type": "bert"},
    "whisper": {
        "architectures": ["WhisperForConditionalGeneration"],
        "model_type": "whisper",
        "d_model": 128,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 256,
        "decoder_ffn_dim": 256,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
    },
    "images": {
        "architectures": ["LlavaForConditionalGeneration"],
        "model_type": "llava",
        "text_config": {"model_type": "llama", **SHAPE},
        "vision_config": {
            "model_type": "clip_vision_model",
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "image_size": 28,
            "patch_size": 14,
        },
        "image_token_index": 5,
    },
    "fp8": {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic"},
    },
}

NGRAM = '{"method": "ngram", "num_speculative_tokens": 2, "prompt_lookup_max": 3}'
# What the user writes (the model is the tiny Llama unless it is given), and what the lines say.
REFUSED: dict[str, tuple[list[str], list[str]]] = {
    "tp": (["--tensor-parallel-size", "2"], ["--tensor-parallel-size: found 2"]),
    "pp": (["--pipeline-parallel-size", "2"], ["--pipeline-parallel-size: found 2"]),
    "dp": (["--data-parallel-size", "2"], ["--data-parallel-size: found 2"]),
    "pcp": (
        ["--prefill-context-parallel-size", "2"],
        ["--prefill-context-parallel-size: found 2"],
    ),
    "dbo": (["--enable-dbo"], ["--enable-dbo: "]),
    "lora": (["--enable-lora"], ["--enable-lora: "]),
    "ngram": (["--speculative-config", NGRAM], ["--speculative-config: "]),
    "fp8 now": (
        ["--quantization", "fp8", "--dtype", "bfloat16"],
        [r"model '.+': is quantised by 'fp8'"],
    ),
    "kv fp8": (["--kv-cache-dtype", "fp8"], ["--kv-cache-dtype: found 'fp8'.* auto, bfloat16"]),
    "cuda graphs": (
        ["-cc.cudagraph_mode=FULL"],
        ["--compilation-config: cudagraph_mode is 'FULL', which has no effect"],
    ),
    "vllm's compiler": (
        ["--compilation-config", '{"mode": 3, "custom_ops": ["+rms_norm"]}'],
        [
            r"--compilation-config: found mode 3 \(VLLM_COMPILE\)",
            r"--compilation-config: custom_ops is \['\+rms_norm'\], which has no effect",
        ],
    ),
    "graph passes": (
        ["--compilation-config", '{"pass_config": {"fuse_norm_quant": true}}'],
        ["--compilation-config: pass_config.fuse_norm_quant is True, which has no effect"],
    ),
    "tracing": (
        ["--enable-layerwise-nvtx-tracing"],
        ["--enable-layerwise-nvtx-tracing: found True, which has no effect"],
    ),
    "prompt embeds": (["--enable-prompt-embeds"], ["--enable-prompt-embeds: "]),
    "cpu offload": (["--cpu-offload-gb", "1"], ["--cpu-offload-gb: "]),
    "kv offload": (["--kv-offloading-size", "1"], ["--kv-offloading-size: "]),
    "fast prefill": (["--kv-sharing-fast-prefill"], ["--kv-sharing-fast-prefill: "]),
    "worker": (["--worker-cls", "some.Worker"], ["--worker-cls: found 'some.Worker'"]),
    "pooling": (["--runner", "pooling"], ["--runner: found 'pooling'"]),
    "cache too large": (
        ["--kv-cache-memory-bytes", "2000000000"],
        [r"--kv-cache-memory-bytes: found 2000000000 \(1\.86 GiB\).*the device's 1\.00 GiB"],
    ),
    "no room": (
        ["--gpu-memory-utilization", "0.0001"],
        [r"memory: the device has 1\.00 GiB, of which 0\.10 MiB may be used: weights \d"],
    ),
    # 2 (k, v) * 2 layers * 2 heads * 64 * 4 bytes a token: 512 tokens are 1 MiB. Of the two blocks
    # of 128 tokens that 512 KiB hold, vLLM keeps one.
    "long request": (
        ["--kv-cache-memory-bytes", "524288", "--max-model-len", "512", "--dtype", "float32"],
        [r"--max-model-len: found 512, for which one request needs 1\.00 MiB.*at most 128"],
    ),
    "many": (
        ["--tensor-parallel-size", "2", "--enable-lora", "--kv-cache-dtype", "fp8"],
        ["--tensor-parallel-size: ", "--enable-lora: ", "--kv-cache-dtype: "],
    ),
    "moe": (["--model", "moe"], ["model '.+': has Mixture-of-Experts layers"]),
    "mla": (
        ["--model", "mla"],
        ["model '.+': has Mixture-of-Experts", r"model '.+': uses multi-head latent attention"],
    ),
    "mamba": (["--model", "mamba"], ["model '.+': has no attention layers"]),
    "hybrid": (["--model", "hybrid"], [r"model '.+': has recurrent \(Mamba or linear"]),
    "embedding": (["--model", "embedding"], ["--runner: found 'pooling'"]),
    "whisper": (
        ["--model", "whisper"],
        ["model '.+': is an encoder-decoder model"],
    ),
    "images": (
        ["--model", "images"],
        ["model '.+': takes images, video or audio.*--language-model-only"],
    ),
    "fp8": (["--model", "fp8"], ["model '.+': is quantised by 'fp8'"]),
}
# These must not be refused.
ACCEPTED: dict[str, list[str]] = {
    "plain": [],
    "eager": ["--enforce-eager"],
    "bfloat16": ["--dtype", "bfloat16", "--kv-cache-dtype", "bfloat16"],
    "not compiled": ["-O0"],
    "compiled less": ["-O1"],
    "compiled more": ["-O3"],
    "mode 1": ["-cc.mode=1"],
    "no cuda graphs": ["-cc.cudagraph_mode=NONE"],
    "one device": ["--tensor-parallel-size", "1"],
    "text only": ["--model", "images", "--language-model-only"],
    "block size": ["--block-size", "64"],
}

_SCRIPT = """
import json, sys
from vllm.config.utils import replace
from vllm.engine.arg_utils import EngineArgs
from vllm.utils.argparse_utils import FlexibleArgumentParser
found = {}
for name, arguments in json.loads(sys.argv[1]).items():
    parser = EngineArgs.add_cli_args(FlexibleArgumentParser())
    try:
        config = EngineArgs.from_cli_args(parser.parse_args(arguments)).create_engine_config()
        # As for a model's text part: the checks run again on what they have left.
        replace(config, model_config=config.model_config)
        found[name] = ["accepted", ""]
    except BaseException as error:
        found[name] = [type(error).__name__, str(error)]
print("FOUND", json.dumps(found), flush=True)
"""


@pytest.fixture(scope="module")
def models(tiny_model, tmp_path_factory) -> Path:
    """A directory for each of MODELS, without weights; and the tiny Llama as `llama`."""
    root = tmp_path_factory.mktemp("models")
    (root / "llama").symlink_to(tiny_model("llama"))
    for name, config in MODELS.items():
        directory = root / name
        directory.mkdir()
        (directory / "config.json").write_text(json.dumps(SHAPE | config))
        for file in tiny_model("llama").glob("tokenizer*"):
            shutil.copy(file, directory)
    return root


@pytest.fixture(scope="module")
def outcomes(models) -> dict[str, list[str]]:
    """For each command line: the exception's type and text, or "accepted"."""
    lines = {name: arguments for name, (arguments, _) in REFUSED.items()} | ACCEPTED
    for name, arguments in lines.items():
        line = list(arguments)
        if "--model" in line:
            line[1] = str(models / line[1])
        else:
            line = ["--model", str(models / "llama"), *line]
        if "--max-model-len" not in line:
            line += ["--max-model-len", "256"]
        lines[name] = line
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, json.dumps(lines)],
        env=plain_environment(TORCHTPU_VIRTUAL_MEMORY_GIB="1", VLLM_XLA_CACHE_PATH=""),
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    return json.loads(line.removeprefix("FOUND "))


@pytest.mark.parametrize("name", REFUSED)
def test_an_unsupported_option_is_refused_in_one_sentence(outcomes, name):
    kind, text = outcomes[name]
    assert kind == "TorchTpuError", text
    lines, patterns = text.split("\n"), REFUSED[name][1]
    assert len(lines) == len(patterns), text
    for line, pattern in zip(sorted(lines), sorted(patterns), strict=True):
        assert re.match(pattern, line)
        assert SENTENCE.fullmatch(line)


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_supported_option_is_not_refused(outcomes, name):
    assert outcomes[name] == ["accepted", ""]


# -- as a user sees it


def _serve(models: Path, *options: str, **variables: str) -> tuple[int, list[str]]:
    """Runs `vllm serve`, which is to refuse; returns its status and the lines of its own."""
    done = subprocess.run(
        [str(Path(sys.executable).with_name("vllm")), "serve", str(models / "llama"), *options],
        env=plain_environment(VLLM_XLA_CACHE_PATH="", **variables),
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, [line for line in done.stderr.splitlines() if SENTENCE.fullmatch(line)]


def test_vllm_serve_ends_with_all_sentences_and_no_traceback(models):
    code, lines = _serve(
        models,
        *("--tensor-parallel-size", "2", "--enable-lora", "--cpu-offload-gb", "1"),
        VLLM_USE_V2_MODEL_RUNNER="1",
        TORCHTPU_DEVICE="virtual",
    )
    assert code == 1
    assert [line.split(":")[0] for line in lines[-4:]] == [
        "--tensor-parallel-size",
        "--enable-lora",
        "--cpu-offload-gb",
        "VLLM_USE_V2_MODEL_RUNNER",
    ]


def test_bad_variables_are_refused_together(models):
    code, lines = _serve(
        models,
        TORCHTPU_DEVICE="gpu",
        TORCHTPU_VIRTUAL_MEMORY_GIB="-1",
        TORCHTPU_COMPILE_GUARD="never",
    )
    assert code == 1
    assert [line.split(":")[0] for line in lines] == [
        "TORCHTPU_DEVICE",
        "TORCHTPU_VIRTUAL_MEMORY_GIB",
        "TORCHTPU_COMPILE_GUARD",
    ]
