"""The choice of the device, without any device."""

import logging
import sys
import types
from pathlib import Path

import pytest
from vllm_torchtpu import device, rivals
from vllm_torchtpu.errors import TorchTpuError


@pytest.fixture(autouse=True)
def undecided(monkeypatch):
    """A process that has not decided, on a host without any device, with TORCHTPU_DEVICE unset."""
    monkeypatch.setattr(device, "_decision", None)
    monkeypatch.delenv("TORCHTPU_DEVICE", raising=False)
    monkeypatch.setattr(device, "has_tpu", lambda: False)
    monkeypatch.setattr(rivals, "entry_points", lambda group: [])
    set_builtin(monkeypatch)


def kind() -> str | None:
    """The kind of device that is chosen; None leaves the process to another platform."""
    found = device.resolve()
    return found and found.kind


def set_builtin(monkeypatch, **detectors):
    """Replaces vLLM's built-in platforms by these detectors."""
    platforms = types.ModuleType("vllm.platforms")
    vars(platforms)["builtin_platform_plugins"] = detectors
    monkeypatch.setitem(sys.modules, "vllm", types.ModuleType("vllm"))
    monkeypatch.setitem(sys.modules, "vllm.platforms", platforms)


class EntryPoint:
    """Another platform plugin's entry point."""

    def __init__(self, name, function):
        self.name, self.load = name, lambda: function


def test_virtual_is_virtual_whatever_the_host_has(monkeypatch):
    monkeypatch.setenv("TORCHTPU_DEVICE", "virtual")
    monkeypatch.setattr(device, "has_tpu", lambda: True)
    assert kind() == "virtual"


def test_tpu_without_a_tpu_is_refused_in_one_sentence(monkeypatch):
    monkeypatch.setenv("TORCHTPU_DEVICE", "tpu")
    with pytest.raises(
        TorchTpuError, match=r"^TORCHTPU_DEVICE: found 'tpu', .* no TPU .*; .*virtual$"
    ):
        device.resolve()


def test_tpu_with_a_tpu_is_the_tpu(monkeypatch):
    monkeypatch.setenv("TORCHTPU_DEVICE", "tpu")
    monkeypatch.setattr(device, "has_tpu", lambda: True)
    assert kind() == "tpu"


def test_auto_takes_a_tpu_without_a_warning(monkeypatch, caplog):
    monkeypatch.setattr(device, "has_tpu", lambda: True)
    assert kind() == "tpu"
    assert not caplog.records


def test_auto_falls_back_to_the_virtual_tpu_with_one_warning(caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("vllm"), "propagate", True)
    assert kind() == "virtual"
    assert kind() == "virtual"
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "virtual TPU" in record.message


@pytest.mark.parametrize("name", ["cuda", "rocm", "xpu", "cpu"])
def test_auto_leaves_the_process_to_a_built_in_platform(monkeypatch, name):
    set_builtin(monkeypatch, tpu=lambda: None, **{name: lambda: "a.Platform"})
    assert device.resolve() is None


def test_auto_ignores_that_libtpu_can_be_imported(monkeypatch):
    set_builtin(monkeypatch, tpu=lambda: "vllm.platforms.tpu.TpuPlatform")
    assert kind() == "virtual"


def test_auto_ignores_a_detector_that_fails(monkeypatch):
    set_builtin(monkeypatch, cuda=lambda: 1 / 0)
    assert kind() == "virtual"


@pytest.mark.parametrize("tpu", [True, False])
def test_auto_leaves_the_process_to_another_active_plugin(monkeypatch, tpu):
    monkeypatch.setattr(device, "has_tpu", lambda: tpu)
    monkeypatch.setattr(rivals, "entry_points", lambda group: [EntryPoint("npu", lambda: "a.B")])
    assert device.resolve() is None


@pytest.mark.parametrize("function", [lambda: None, lambda: 1 / 0])
def test_auto_ignores_another_plugin_that_is_inactive_or_fails(monkeypatch, function):
    monkeypatch.setattr(rivals, "entry_points", lambda group: [EntryPoint("npu", function)])
    assert kind() == "virtual"


def test_auto_ignores_a_plugin_that_vllm_plugins_leaves_out(monkeypatch):
    monkeypatch.setenv("VLLM_PLUGINS", "torchtpu")
    monkeypatch.setattr(rivals, "entry_points", lambda group: [EntryPoint("npu", lambda: "a.B")])
    assert kind() == "virtual"


def test_a_plugin_that_asks_about_us_does_not_recurse(monkeypatch):
    answers = []

    def other():
        answers.append(device.resolve())
        return "a.Platform"

    monkeypatch.setattr(rivals, "entry_points", lambda group: [EntryPoint("npu", other)])
    assert device.resolve() is None
    assert answers == [None]


def test_a_bad_variable_is_refused(monkeypatch):
    monkeypatch.setenv("TORCHTPU_DEVICE", "tpuu")
    with pytest.raises(TorchTpuError, match="auto, tpu, virtual"):
        device.resolve()


def add_pci(root: Path, address: str, vendor: str, model: str, group: str | None) -> None:
    pci = root / "sys/bus/pci/devices" / address
    pci.mkdir(parents=True)
    (pci / "vendor").write_text(vendor + "\n")
    (pci / "device").write_text(model + "\n")
    if group:
        (pci / "iommu_group").symlink_to(f"../../../kernel/iommu_groups/{group}")


@pytest.mark.parametrize(
    ("vendor", "model", "group", "given", "expected"),
    [
        ("0x1ae0", "0x0076", "7", "7", True),
        ("0x1ae0", "0x0076", "7", "8", False),
        ("0x1ae0", "0x0076", None, "7", False),
        ("0x1ae0", "0x0042", "7", "7", False),
        ("0x10de", "0x0076", "7", "7", False),
    ],
    ids=["v7x", "not given to this container", "not under VFIO", "network card", "other vendor"],
)
def test_a_tpu_is_found_on_the_pci_bus(
    monkeypatch, tmp_path, vendor, model, group, given, expected
):
    monkeypatch.undo()
    add_pci(tmp_path, "0000:00:05.0", vendor, model, group)
    (tmp_path / "dev/vfio").mkdir(parents=True)
    (tmp_path / "dev/vfio" / given).touch()
    assert device.has_tpu(tmp_path) is expected


def test_a_tpu_is_found_by_its_accel_device(monkeypatch, tmp_path):
    monkeypatch.undo()
    assert not device.has_tpu(tmp_path)
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/accel0").touch()
    assert device.has_tpu(tmp_path)
