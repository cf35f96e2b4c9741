"""Environment variables: parsing, and that the documentation says what the code does."""

from pathlib import Path

import pytest
from vllm_torchtpu import envs
from vllm_torchtpu.errors import TorchTpuError

PAGE = Path(__file__).parents[2] / "docs" / "environment.md"


def test_an_empty_environment_gives_the_defaults(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/someone")
    assert envs.load({}) == envs.Settings(
        device="auto",
        virtual_memory_gib=None,
        compile_guard="warn",
        cache_dir=Path("/home/someone/.cache/vllm-torchtpu"),
        xla_cache_path=Path("/home/someone/.cache/vllm/xla_cache"),
    )


def test_the_defaults_follow_xdg_cache_home(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache/someone")
    settings = envs.load({})
    assert settings.cache_dir == Path("/var/cache/someone/vllm-torchtpu")
    assert settings.xla_cache_path == Path("/var/cache/someone/vllm/xla_cache")


def test_good_values_are_parsed():
    settings = envs.load(
        {
            "TORCHTPU_DEVICE": "virtual",
            "TORCHTPU_VIRTUAL_MEMORY_GIB": "0.5",
            "TORCHTPU_COMPILE_GUARD": "raise",
            "TORCHTPU_CACHE_DIR": "/a",
            "VLLM_XLA_CACHE_PATH": "/b",
        }
    )
    assert settings == envs.Settings("virtual", 0.5, "raise", Path("/a"), Path("/b"))


def test_an_empty_cache_path_means_no_cache():
    assert envs.load({"VLLM_XLA_CACHE_PATH": ""}).xla_cache_path is None


def test_a_tilde_is_expanded(monkeypatch):
    monkeypatch.setenv("HOME", "/home/someone")
    assert envs.load({"TORCHTPU_CACHE_DIR": "~/x"}).cache_dir == Path("/home/someone/x")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TORCHTPU_DEVICE", "gpu"),
        ("TORCHTPU_DEVICE", "Virtual"),
        ("TORCHTPU_VIRTUAL_MEMORY_GIB", "much"),
        ("TORCHTPU_VIRTUAL_MEMORY_GIB", "0"),
        ("TORCHTPU_VIRTUAL_MEMORY_GIB", "-1"),
        ("TORCHTPU_VIRTUAL_MEMORY_GIB", "nan"),
        ("TORCHTPU_VIRTUAL_MEMORY_GIB", "inf"),
        ("TORCHTPU_COMPILE_GUARD", "off"),
        ("TORCHTPU_CACHE_DIR", "relative"),
        ("VLLM_XLA_CACHE_PATH", "relative"),
    ],
)
def test_a_bad_value_names_the_variable_the_value_and_what_is_allowed(name, value):
    variable = next(variable for variable in envs.VARIABLES if variable.name == name)
    with pytest.raises(TorchTpuError) as raised:
        envs.load({name: value})
    assert str(raised.value).startswith(f"{name}: found {value!r}; ")
    assert variable.allowed.replace("`", "") in str(raised.value)


def test_all_bad_variables_are_reported_at_once():
    with pytest.raises(TorchTpuError) as raised:
        envs.load({variable.name: "no/such value" for variable in envs.VARIABLES})
    lines = str(raised.value).splitlines()
    assert [line.split(":")[0] for line in lines] == [v.name for v in envs.VARIABLES]


def test_only_declared_variables_are_exported(monkeypatch):
    monkeypatch.setenv("TPU_LIBRARY_PATH", "before")
    envs.export(TPU_LIBRARY_PATH="after")
    assert envs.current("TPU_LIBRARY_PATH") == "after"
    with pytest.raises(KeyError, match="UNDECLARED"):
        envs.export(UNDECLARED="1")


def test_vllm_plugins_distinguishes_unset_from_empty(monkeypatch):
    monkeypatch.delenv("VLLM_PLUGINS", raising=False)
    assert envs.vllm_plugins() is None
    monkeypatch.setenv("VLLM_PLUGINS", "a,b")
    assert envs.vllm_plugins() == ["a", "b"]


def test_every_setting_has_exactly_one_variable():
    fields = [variable.field for variable in envs.VARIABLES]
    assert sorted(fields) == sorted(envs.Settings.__dataclass_fields__)


def test_the_page_is_what_the_declarations_say():
    assert PAGE.read_text(encoding="utf-8") == envs.markdown(), "run `make fix`"
