"""The packed parameters of the sampling op, row by row."""

from types import SimpleNamespace

import numpy as np
import pytest
from vllm.sampling_params import SamplingParams
from vllm_torchtpu.runner.sampling_rows import SamplingRows
from vllm_torchtpu.runner.seed import RequestSeeds

VOCABULARY = 512


@pytest.fixture(autouse=True)
def _op(virtual_tpu):
    """The op's module declares itself to torch_tpu."""


@pytest.fixture
def columns():
    from vllm_torchtpu.ops import sampling

    return sampling


def _batch(params: dict[str, SamplingParams], lengths: list[tuple[int, int]]) -> SimpleNamespace:
    """A batch as vLLM keeps it, in arrays of more rows than requests; (prompt, all) tokens each."""
    spare = [9.0] * 3  # of earlier requests
    values = list(params.values())
    return SimpleNamespace(
        num_reqs=len(params),
        req_ids=list(params),
        temperature_cpu=np.array([p.temperature for p in values] + spare, np.float32),
        top_p_cpu=np.array([p.top_p for p in values] + spare, np.float32),
        top_k_cpu=np.array([p.top_k or VOCABULARY for p in values] + spare, np.int32),
        num_prompt_tokens=np.array([prompt for prompt, _ in lengths] + [0] * 3, np.int32),
        num_tokens_no_spec=np.array([total for _, total in lengths] + [77] * 3, np.int32),
        sampling_metadata=object(),
    )


def _requests(params: dict[str, SamplingParams]) -> dict:
    return {name: SimpleNamespace(sampling_params=p) for name, p in params.items()}


PARAMS = {
    "a": SamplingParams(temperature=0.7, top_k=5, top_p=0.9, min_p=0.25, seed=3),
    "b": SamplingParams(temperature=0.0),
}


def test_a_row_holds_its_request_s_parameters_in_float32_bits(columns):
    batch = _batch(PARAMS, [(4, 4), (10, 13)])
    rows = SamplingRows(RequestSeeds(0)).pack(batch, _requests(PARAMS), 8).numpy()
    assert rows.shape == (8, columns.NUM_COLUMNS)
    assert rows.dtype == np.int32
    real = rows.view(np.float32)
    assert real[0, columns.TEMPERATURE] == np.float32(0.7)
    assert real[0, columns.TOP_P] == np.float32(0.9)
    assert real[0, columns.MIN_P] == np.float32(0.25)
    assert rows[0, columns.TOP_K] == 5
    assert (rows[0, columns.SEED_LOW], rows[0, columns.SEED_HIGH]) == (3, 0)
    assert real[1, columns.TEMPERATURE] == 0.0


def test_the_counter_is_the_number_of_generated_tokens(columns):
    batch = _batch(PARAMS, [(4, 4), (10, 13)])
    rows = SamplingRows(RequestSeeds(0)).pack(batch, _requests(PARAMS), 8)
    assert rows[:2, columns.COUNTER].tolist() == [0, 3]


def test_padded_rows_are_greedy_and_carry_nothing_of_earlier_requests(columns):
    batch = _batch(PARAMS, [(4, 4), (10, 13)])
    padded = SamplingRows(RequestSeeds(0)).pack(batch, _requests(PARAMS), 4).numpy()[2:]
    real = padded.view(np.float32)
    assert (real[:, columns.TEMPERATURE] == 0).all()
    assert (real[:, columns.TOP_P] == 1).all()
    assert (padded[:, columns.TOP_K] == 0).all()
    assert (padded[:, columns.COUNTER] == 0).all()


def test_a_decode_step_moves_the_counters_only(columns):
    rows = SamplingRows(RequestSeeds(0))
    batch = _batch(PARAMS, [(4, 4), (10, 13)])
    first = rows.pack(batch, _requests(PARAMS), 8).clone()
    batch.num_tokens_no_spec[:2] += 1
    second = rows.pack(batch, _requests(PARAMS), 8)
    assert second[:2, columns.COUNTER].tolist() == [1, 4]
    first[:, columns.COUNTER] = second[:, columns.COUNTER] = 0
    assert first.equal(second)


def test_a_new_batch_in_the_same_bucket_brings_its_own_parameters(columns):
    """vLLM makes a new metadata object; rows of requests that left must not stay."""
    rows = SamplingRows(RequestSeeds(0))
    rows.pack(_batch(PARAMS, [(4, 4), (10, 13)]), _requests(PARAMS), 8)
    other = {"c": SamplingParams(temperature=1.5, seed=8)}
    packed = rows.pack(_batch(other, [(2, 5)]), _requests(other), 8).numpy()
    assert packed.view(np.float32)[:, columns.TEMPERATURE].tolist() == [1.5] + [0.0] * 7
    assert packed[:, columns.SEED_LOW].tolist() == [8] + [0] * 7
    assert packed[:, columns.COUNTER].tolist() == [3] + [0] * 7


def test_another_bucket_of_the_same_batch_has_its_own_rows():
    rows = SamplingRows(RequestSeeds(0))
    batch = _batch(PARAMS, [(4, 4), (10, 13)])
    small = rows.pack(batch, _requests(PARAMS), 8).clone()
    large = rows.pack(batch, _requests(PARAMS), 32)
    assert large.shape[0] == 32
    assert large[:8].equal(small)
