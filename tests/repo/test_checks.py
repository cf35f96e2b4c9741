"""Each check of the repository lets good files pass and reports bad ones, with where and what to do."""

from pathlib import Path

import pytest

from ci.checks import dependency, environ, host, link, patch, pin, size, source


@pytest.fixture
def report(tmp_path):
    """Writes files and returns what a check says of them."""

    def run(check, files: dict[str, str], **options) -> list[str]:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return check.problems(tmp_path, [Path(name) for name in files], **options)

    return run


def function(lines: int) -> str:
    return "def f():\n" + "    pass\n" * (lines - 1)


def test_files_and_functions_at_the_limit_pass(report):
    assert report(size, {"a.py": function(60) + "#\n" * 340}) == []


def test_a_long_file_and_a_long_function_are_both_reported(report):
    found = report(
        size, {"a.py": "class A:\n    " + function(61).replace("\n", "\n    ") + "\n" * 400}
    )
    assert [line.split(",")[0] for line in found] == [
        "a.py: file of 462 lines",
        "a.py:A.f: function of 61 lines",
    ]


def test_the_allow_list_may_only_shrink(report):
    long = {"a.py": function(70)}
    assert report(size, long, allowed={"a.py:f": 70}) == []
    assert "allowed are 69" in report(size, long, allowed={"a.py:f": 69})[0]
    assert "lower it to 70" in report(size, long, allowed={"a.py:f": 80})[0]
    assert "remove it" in report(size, {"a.py": function(9)}, allowed={"a.py:f": 70})[0]


def test_a_distribution_may_import_what_it_declares(report):
    good = "import os\nimport jax.numpy as jnp\nfrom torchtpu_kernels.core import check\nfrom . import a\n"
    assert report(dependency, {"kernels/torchtpu_kernels/a.py": good}) == []


@pytest.mark.parametrize(
    ("path", "text", "name"),
    [
        ("kernels/torchtpu_kernels/a.py", "def f():\n    import torch\n", "torch"),
        ("tools/tpu_matrix/a.py", "\nfrom numpy import array\n", "numpy"),
        ("ci/setup/a.py", "import os\nimport yaml\n", "yaml"),
    ],
)
def test_an_undeclared_import_is_reported_with_its_line(report, path, text, name):
    (found,) = report(dependency, {path: text})
    assert found.startswith(f"{path}:2: imports {name};")


UPSTREAM_WRITES = [
    "import torch\ntorch.compile = None\n",
    "import torch as t\nt.nn.Linear.forward = None\n",
    "from vllm.config import VllmConfig\nVllmConfig.compute_hash = None\n",
    "from vllm.config import VllmConfig\nsetattr(VllmConfig, 'compute_hash', None)\n",
    "from vllm import envs\nenvs.VARIABLES['a'] = None\n",
    "import torch\na, torch.x = 1, 2\n",
    "import torch\ndel torch.x\n",
    "import sys\nsys.modules['torch'] = None\n",
    "from vllm import config\nconfig.VllmConfig = None\n",
]


@pytest.mark.parametrize("text", UPSTREAM_WRITES)
def test_a_write_to_an_upstream_object_is_reported(report, text):
    (found,) = report(patch, {"plugin/vllm_torchtpu/worker.py": text})
    assert found.startswith("plugin/vllm_torchtpu/worker.py:2: writes to ")


@pytest.mark.parametrize("text", UPSTREAM_WRITES)
def test_patches_may_write_to_upstream_objects(report, text):
    assert report(patch, {"plugin/vllm_torchtpu/patches/one.py": text}) == []


def test_writes_to_own_objects_and_to_torch_settings_are_no_patches(report):
    text = (
        "import os\nimport torch\nfrom torch._inductor import config\nfrom vllm_torchtpu import device\n"
        "class A:\n    def __init__(self):\n        self.x = torch.zeros(1)\n        self.x.y = 1\n"
        "torch._dynamo.config.recompile_limit = 64\nconfig.fx_graph_cache = False\n"
        "device.kind = 'tpu'\nos.environ['A'] = 'b'\nimport sys\nsys.excepthook = print\n"
    )
    assert report(patch, {"plugin/vllm_torchtpu/worker.py": text}) == []


@pytest.mark.parametrize(
    "text",
    [
        "import os\nos.environ.get('A')\n",
        "import os\nos.getenv('A')\n",
        "\nfrom os import environ\n",
    ],
)
def test_the_environment_is_used_in_one_file(report, text):
    assert report(environ, {"plugin/vllm_torchtpu/envs.py": text}) == []
    (found,) = report(environ, {"plugin/vllm_torchtpu/worker.py": text})
    assert found.startswith("plugin/vllm_torchtpu/worker.py:2: touches the environment;")


# In pieces, so that this file passes the check that it tests.
HOSTS = ["https://py" + "pi.org/x", "files.python" + "hosted.org", "http://mirror:8080/sim" + "ple"]
PATHS = ["/ro" + "ot/.cache", "/tm" + "p/x", "/ho" + "me/anna/x", "/wo" + "rk/main"]


@pytest.mark.parametrize("text", HOSTS + PATHS)
def test_a_registry_host_or_a_machine_path_is_reported(report, text):
    (found,) = report(host, {"README.md": f"ok\nsee {text}\n"})
    assert found.startswith("README.md:2: names a")


def test_other_hosts_paths_and_binary_files_pass(report, tmp_path):
    (tmp_path / "a.bin").write_bytes(b"\xff\x00" + HOSTS[0].encode())
    text = {
        "a.md": "http://127.0.0.1:8000/v1 https://github.com/a/b /usr/bin/cc /path/to/python framework\n"
    }
    assert report(host, text) == []
    assert host.problems(tmp_path, [Path("a.bin")]) == []


def test_a_resolved_package_without_a_pin_is_reported(report, tmp_path):
    pyproject = '# pins: constraints\nx = [\n  "torch==2.14.0",\n]\n# pins: build constraints\n'
    package = '[[package]]\nname = "{}"\nsource = {{ {} = "x" }}\n'
    lock = package.format("torch", "registry") + package.format("tpu-matrix", "editable")
    assert report(pin, {"pyproject.toml": pyproject}) == []
    assert report(pin, {"uv.lock": lock}) == []
    (found,) = report(pin, {"uv.lock": lock + package.format("numpy", "registry")})
    assert "numpy is installed but not pinned; run `make pins`" in found


def test_broken_links_and_unknown_commands_are_reported(report):
    files = {"Makefile": "demo: setup\n\techo\n", "docs/a.md": "[x](b.md) `make fly`\n"}
    found = report(link, files)
    assert [line.split(",")[0] for line in found] == [
        "docs/a.md:1: links to b.md",
        "docs/a.md:1: names `make fly`",
    ]


def test_links_that_lead_somewhere_pass(report):
    files = {
        "Makefile": "demo: setup\n",
        "docs/a.md": "[x](../b.md#part) [y](https://a.b) `make demo ARGS=1`",
        "b.md": "",
    }
    assert report(link, files) == []


def test_a_file_that_does_not_parse_is_left_to_ruff(tmp_path):
    (tmp_path / "a.py").write_text("def (")
    assert source.tree(tmp_path / "a.py").body == []
