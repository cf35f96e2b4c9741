"""A row, its exact command, and the id that follows what is tested."""

import pytest
from tpu_matrix.matrix.command import serve_argv
from tpu_matrix.matrix.identity import ROW_ID_PATTERN
from tpu_matrix.matrix.load import load

from tests.tools.factory import copy_example, example_row


def changed(tmp_path, old, new, name="models/llama.yaml"):
    root = copy_example(tmp_path)
    path = root / name
    path.write_text(path.read_text().replace(old, new, 1))
    loaded = load(root)
    assert not loaded.findings
    return loaded.matrix.by_slug["tiny"]


def test_the_command_says_everything_that_the_row_claims():
    assert example_row().argv == (
        "vllm", "serve", "example/tiny", "--max-model-len", "1024", "--tensor-parallel-size", "2",
        "--no-async-scheduling", "--no-enable-prefix-caching",
    )  # fmt: skip


def test_a_claimed_feature_is_switched_on_and_every_other_off(tmp_path):
    row = changed(tmp_path, "tier: nightly", "tier: nightly\n    features: [prefix-caching]")
    assert "--enable-prefix-caching" in row.argv
    assert "--no-async-scheduling" in row.argv


def test_serve_arguments_of_every_type_are_spelled_as_vllm_reads_them(tmp_path):
    arguments = (
        "{seed: 3, enforce-eager: true, log-stats: false, swap-space: 0.5, reasoning-parser: qwen3}"
    )
    row = changed(tmp_path, "tier: nightly", f"tier: nightly\n    serve_args: {arguments}")
    assert row.argv[-8:] == (
        "--enforce-eager", "--no-log-stats", "--reasoning-parser", "qwen3", "--seed", "3", "--swap-space", "0.5",
    )  # fmt: skip


def test_a_local_copy_is_served_under_the_checkpoints_name():
    row = example_row()
    argv = serve_argv(row.item, row.features, model_path="weights/tiny", extra=("--port", "8001"))
    assert argv[:5] == ("vllm", "serve", "weights/tiny", "--served-model-name", "example/tiny")
    assert argv[5:] == (*row.argv[3:], "--port", "8001")


def test_the_hash_is_pinned_because_a_change_makes_all_evidence_stale():
    assert example_row().id == "tiny:v7x-2:0e3800d4"


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("max_model_len: 1024", "max_model_len: 2048", "models/llama.yaml"),
        ("parallel: {tp: 2}", "parallel: {dp: 2}", "models/llama.yaml"),
        ("parallel: {tp: 2}", "parallel: {tp: 1, idle: 1}", "models/llama.yaml"),
        ("tier: nightly", "tier: nightly\n    weights: int8", "models/llama.yaml"),
        ("tier: nightly", "tier: nightly\n    revision: main", "models/llama.yaml"),
        ("tier: nightly", "tier: nightly\n    dtype: float32", "models/llama.yaml"),
        ("tier: nightly", "tier: nightly\n    kv_cache_dtype: fp8", "models/llama.yaml"),
        ("tier: nightly", "tier: nightly\n    quantization: int8", "models/llama.yaml"),
        ("tier: nightly", "tier: nightly\n    features: [prefix-caching]", "models/llama.yaml"),
        ("tier: nightly", "tier: nightly\n    serve_args: {seed: 1}", "models/llama.yaml"),
        ("off: [--no-async-scheduling]", "off: []", "features.yaml"),
        ("hardware: v7x-2", "hardware: v7x-8", "models/llama.yaml"),
    ],
)
def test_whatever_changes_the_test_changes_the_id(old, new, name, tmp_path):
    assert changed(tmp_path, old, new, name).args_hash != example_row().args_hash


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("at_least: 0.5", "at_least: 0.9"),
        ("tier: nightly", "tier: recipe"),
        ("name: Tiny", "name: Tiny model"),
        ("tier: nightly", "tier: nightly\n    note: A remark."),
    ],
)
def test_what_does_not_change_the_test_keeps_the_id(old, new, tmp_path):
    assert changed(tmp_path, old, new).id == example_row().id


def test_an_id_is_slug_hardware_and_short_hash():
    match = ROW_ID_PATTERN.fullmatch(example_row().id)
    assert match is not None
    assert (match["slug"], match["hardware"]) == ("tiny", "v7x-2")
