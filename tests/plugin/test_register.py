"""How vLLM finds the plugin, and what a user reads when it refuses."""

import importlib.util
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from vllm_torchtpu import device, register
from vllm_torchtpu.errors import TorchTpuError

FIND_PLATFORM = """
import subprocess, sys
from vllm.platforms import current_platform
print(type(current_platform).__name__, current_platform.device_type)
if len(sys.argv) > 1:
    subprocess.run([sys.executable, "-c", sys.argv[1]], check=True)
"""


def test_the_entry_point_names_the_function():
    (point,) = (p for p in entry_points(group="vllm.platform_plugins") if p.name == "torchtpu")
    assert point.load() is register.platform_plugin


def test_the_platform_it_names_exists():
    module, _, name = register.PLATFORM.rpartition(".")
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    assert f"class {name}(" in Path(spec.origin).read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ["tpu", "virtual"])
def test_a_device_of_ours_is_prepared_and_gives_the_platform(monkeypatch, kind):
    prepared = []
    monkeypatch.setattr(device, "resolve", lambda: device.Device(kind, "test"))
    monkeypatch.setattr(device, "prepare", prepared.append)
    assert register.platform_plugin() == register.PLATFORM
    assert prepared == [device.Device(kind, "test")]


def test_no_device_of_ours_is_no_platform_and_prepares_nothing(monkeypatch):
    monkeypatch.setattr(device, "resolve", lambda: None)
    monkeypatch.setattr(device, "prepare", pytest.fail)
    assert register.platform_plugin() is None


def test_a_refusal_is_not_an_exception_that_vllm_would_swallow(monkeypatch):
    def refuse():
        raise TorchTpuError("where: what; remedy")

    monkeypatch.setattr(device, "resolve", refuse)
    with pytest.raises(SystemExit, match="where: what; remedy"):
        register.platform_plugin()


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_plain_shell_gets_the_platform_and_one_warning_for_parent_and_child(run):
    done = run(FIND_PLATFORM, FIND_PLATFORM, PYTHONUNBUFFERED="1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("TorchTpuPlatform tpu") == 2
    assert (done.stdout + done.stderr).count("serving on the virtual TPU") == 1


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_vllm_stops_with_the_sentence_when_there_is_no_tpu(run):
    if device.has_tpu():
        pytest.skip("this host has a TPU")
    done = run(FIND_PLATFORM, TORCHTPU_DEVICE="tpu")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("TORCHTPU_DEVICE: found 'tpu', but ")
    assert "Traceback" not in done.stderr
