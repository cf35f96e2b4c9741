"""What cannot fit is refused by arithmetic; every byte here is worked out by hand."""

import contextlib
from types import SimpleNamespace

import huggingface_hub.constants
import pytest
import torch
from safetensors.torch import save_file
from vllm_torchtpu import fit, memory
from vllm_torchtpu.device import Device
from vllm_torchtpu.errors import TorchTpuError

MIB = 1024**2

# Weights: 300 elements in two files. Activations in bfloat16, per token:
# 2 * 32 (residual) + 2 * (4 + 2) * 8 (q, k, v, output) + 3 * 64 (MLP) = 352 elements.
TOKENS, ROWS, VOCABULARY = 10, 3, 100
ACTIVATION_BYTES = 10 * 352 * 2 + 3 * 100 * 4 * 4
# K and V of one token: 2 * 5 layers * 2 heads * 8 elements * 2 bytes.
TOKEN_BYTES = 320
BLOCK = 10


def _config(model: str, *, max_model_len=100, utilization=0.5, requested=None, **changes):
    facts = {"sliding_window": None, "intermediate": 64, "dtype": torch.bfloat16}
    facts |= {"cache_dtype": "auto", "blocks": None, "original": None}
    facts |= {"revision": None, "download_dir": None} | changes
    return SimpleNamespace(
        parallel_config=None,
        load_config=SimpleNamespace(download_dir=facts["download_dir"]),
        scheduler_config=SimpleNamespace(max_num_batched_tokens=TOKENS, max_num_seqs=ROWS),
        cache_config=SimpleNamespace(
            gpu_memory_utilization=utilization,
            kv_cache_memory_bytes=requested,
            cache_dtype=facts["cache_dtype"],
            block_size=BLOCK,
            user_specified_block_size=True,
            num_gpu_blocks_override=facts["blocks"],
        ),
        model_config=SimpleNamespace(
            model=model,
            revision=facts["revision"],
            max_model_len=max_model_len,
            original_max_model_len=facts["original"],
            dtype=facts["dtype"],
            hf_text_config=SimpleNamespace(intermediate_size=facts["intermediate"]),
            get_hidden_size=lambda: 32,
            get_num_attention_heads=lambda _: 4,
            get_num_kv_heads=lambda _: 2,
            get_head_size=lambda: 8,
            get_vocab_size=lambda: VOCABULARY,
            get_num_layers=lambda _: 5,
            get_sliding_window=lambda: facts["sliding_window"],
        ),
    )


@pytest.fixture
def checkpoint(tmp_path) -> str:
    """Two files of 100 and 200 elements; float32 on disk, whatever they are loaded as."""
    save_file({"a": torch.zeros(10, 10)}, tmp_path / "model-1.safetensors")
    save_file({"b": torch.zeros(199), "c": torch.zeros(())}, tmp_path / "model-2.safetensors")
    (tmp_path / "config.json").write_text("{}")
    return str(tmp_path)


@pytest.fixture
def device(monkeypatch):
    """A function that gives the virtual TPU a number of bytes."""
    monkeypatch.setattr(memory.device, "resolve", lambda: Device("virtual", "test"))

    def give(count: int) -> None:
        monkeypatch.setattr(memory, "total_bytes", lambda: count)

    return give


def test_activations_are_one_layer_s_and_the_logits():
    assert fit.activation_bytes(_config("")) == ACTIVATION_BYTES == 11840


def test_activations_follow_the_dtype_but_logits_stay_float32():
    assert fit.activation_bytes(_config("", dtype=torch.float32)) == 2 * 7040 + 4800


def test_an_unknown_mlp_counts_as_four_times_the_hidden_size():
    """3 * 128 instead of 3 * 64 elements per token."""
    wider = fit.activation_bytes(_config("", intermediate=None))
    assert wider - ACTIVATION_BYTES == 10 * 3 * 64 * 2


def test_of_an_mlp_per_layer_the_largest_counts():
    assert fit.activation_bytes(_config("", intermediate=[8, 64, 32])) == ACTIVATION_BYTES


# Usable, to the byte: weights 300 * 2, activations, and eleven blocks of ten tokens: vLLM keeps one.
NEEDED = 600 + ACTIVATION_BYTES + 110 * TOKEN_BYTES


def test_a_model_that_fits_to_the_byte_passes(checkpoint, device):
    device(2 * NEEDED)
    fit.refuse_what_cannot_fit(_config(checkpoint))


def test_one_byte_less_is_refused_with_the_length_that_fits(checkpoint, device):
    device(2 * (NEEDED - 1))
    with pytest.raises(TorchTpuError) as refused:
        fit.refuse_what_cannot_fit(_config(checkpoint))
    sentence = str(refused.value)
    assert sentence.startswith("--max-model-len: found 100, for which one request needs 0.03 MiB")
    assert "lower it to at most 90" in sentence
    assert "\n" not in sentence


def test_weights_alone_that_do_not_fit_are_refused(checkpoint, device):
    device(2 * (600 + ACTIVATION_BYTES))
    with pytest.raises(TorchTpuError, match=r"^memory: the device has .*weights 0\.00 MiB"):
        fit.refuse_what_cannot_fit(_config(checkpoint))


def test_a_requested_cache_is_what_a_request_must_fit(checkpoint, device):
    device(MIB)
    fit.refuse_what_cannot_fit(_config(checkpoint, requested=110 * TOKEN_BYTES))
    with pytest.raises(TorchTpuError, match=r"lower it to at most 40(,|$)"):
        fit.refuse_what_cannot_fit(_config(checkpoint, requested=60 * TOKEN_BYTES - 1))


def test_a_cache_in_a_smaller_dtype_counts_as_such(checkpoint, device):
    """Weights and activations in float32, the cache in bfloat16: 11 blocks of 3,200 bytes."""
    device(2 * (1200 + 2 * 7040 + 4800 + 110 * TOKEN_BYTES))
    fit.refuse_what_cannot_fit(_config(checkpoint, dtype=torch.float32, cache_dtype="bfloat16"))
    with pytest.raises(TorchTpuError, match="--max-model-len"):
        fit.refuse_what_cannot_fit(_config(checkpoint, dtype=torch.float32))


def test_a_length_that_vllm_is_to_fit_is_not_refused(checkpoint, device):
    device(2 * (NEEDED - 50 * TOKEN_BYTES))
    fit.refuse_what_cannot_fit(_config(checkpoint, original=-1))


def test_a_number_of_blocks_must_fit_and_hold_the_longest_request(checkpoint, device):
    device(2 * NEEDED)
    fit.refuse_what_cannot_fit(_config(checkpoint, blocks=11))
    with pytest.raises(TorchTpuError, match=r"--num-gpu-blocks-override: found 12.*at most 11"):
        fit.refuse_what_cannot_fit(_config(checkpoint, blocks=12))
    with pytest.raises(TorchTpuError, match=r"--max-model-len: found 100.*at most 90"):
        fit.refuse_what_cannot_fit(_config(checkpoint, blocks=10))


def test_consolidated_copies_of_the_weights_are_not_counted(checkpoint, device):
    save_file({"a": torch.zeros(5000)}, f"{checkpoint}/consolidated.safetensors")
    device(2 * NEEDED)
    fit.refuse_what_cannot_fit(_config(checkpoint))


def test_a_sliding_window_needs_less_than_the_longest_request(checkpoint, device):
    device(2 * (NEEDED - 1))
    fit.refuse_what_cannot_fit(_config(checkpoint, sliding_window=16))


@pytest.mark.parametrize("model", ["somebody/some-model", "empty"])
def test_without_a_checkpoint_on_disk_nothing_is_refused(model, device, tmp_path):
    device(1)
    (tmp_path / "empty").mkdir()
    name = str(tmp_path / "empty") if model == "empty" else model
    fit.refuse_what_cannot_fit(_config(name))


@pytest.mark.parametrize("is_default", [True, False], ids=["the Hub's cache", "--download-dir"])
@pytest.mark.parametrize(("revision", "is_refused"), [(None, True), ("main", True), ("old", False)])
def test_a_downloaded_checkpoint_is_found_by_its_name(
    checkpoint, device, tmp_path, monkeypatch, revision, is_refused, is_default
):
    """The Hub's cache: models--owner--name/refs/<revision> names a folder of snapshots/."""
    cache = tmp_path / "hub"
    repository = cache / "models--somebody--some-model"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("0" * 40)
    (repository / "snapshots").mkdir()
    (repository / "snapshots" / ("0" * 40)).symlink_to(checkpoint)
    default = cache if is_default else tmp_path / "nothing here"
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(default))
    device(2 * (NEEDED - 1))
    config = _config(
        "somebody/some-model", revision=revision, download_dir=None if is_default else str(cache)
    )
    refusal = pytest.raises(TorchTpuError, match=r"^--max-model-len: found 100")
    with refusal if is_refused else contextlib.nullcontext():
        fit.refuse_what_cannot_fit(config)


def test_without_a_model_nothing_is_refused():
    fit.refuse_what_cannot_fit(SimpleNamespace(model_config=None))
