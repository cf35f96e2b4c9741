"""The virtual TPU's backend: the rewrite of linear layers changes no value."""

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("virtual_tpu")]


@pytest.fixture(autouse=True)
def _fresh_inference():
    import torch

    torch._dynamo.reset()
    with torch.no_grad():
        yield


def _modules(dtype):
    import torch

    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(24, 40, dtype=dtype),
        torch.nn.GELU(),
        torch.nn.Linear(40, 7, bias=False, dtype=dtype),
    )


@pytest.mark.parametrize("shape", [(3, 24), (2, 5, 24), (24,)])
@pytest.mark.parametrize(("name", "tolerance"), [("float32", 1e-5), ("bfloat16", 3e-2)])
def test_a_compiled_model_equals_torch_on_the_host(shape, name, tolerance):
    import torch
    from vllm_torchtpu.runner.backend import virtual_tpu

    dtype = getattr(torch, name)
    model = _modules(dtype)
    x = torch.randn(shape, dtype=dtype)
    expected = _modules(torch.float64)
    expected.load_state_dict(model.state_dict())
    wanted = expected(x.double())
    compiled = torch.compile(model.to("tpu"), backend=virtual_tpu, fullgraph=True, dynamic=False)
    found = compiled(x.to("tpu")).cpu()
    assert found.dtype == dtype
    torch.testing.assert_close(found.double(), wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("name", "rewritten"), [("float32", 2), ("bfloat16", 0)])
def test_only_float32_linears_are_rewritten(name, rewritten, monkeypatch):
    import torch
    from vllm_torchtpu.ops.linear import linear
    from vllm_torchtpu.runner import backend

    seen = []

    def fake_lookup(which):
        assert which == "tpu"

        def compile_graph(graph, inputs, **options):
            seen.append([node.target for node in graph.graph.nodes])
            return graph.forward

        return compile_graph

    monkeypatch.setattr(backend, "lookup_backend", fake_lookup)
    model = _modules(getattr(torch, name)).to("tpu")
    compiled = torch.compile(model, backend=backend.virtual_tpu, fullgraph=True, dynamic=False)
    compiled(torch.randn(3, 24, dtype=getattr(torch, name)).to("tpu"))
    assert sum(target is linear for target in seen[0]) == rewritten
