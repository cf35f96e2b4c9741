"""`vllm serve` in a plain shell: the API answers, and every signal ends it in order."""

import json
import os
import signal

import httpx
import pytest

from demo.reference import greedy
from tests.e2e.server import Ending, VllmServer, streaming

pytestmark = pytest.mark.engine

PROMPT = "A serving engine keeps"
NEW_TOKENS = 12
GREEDY = {"temperature": 0, "max_tokens": NEW_TOKENS, "ignore_eos": True}


@pytest.fixture(scope="module")
def directory(tiny_model):
    return tiny_model("llama")


@pytest.fixture(scope="module")
def start(directory, tmp_path_factory):
    """A function that makes servers; they share compiled executables with other modules."""

    def make(*options: str) -> VllmServer:
        log = tmp_path_factory.mktemp("serve") / "log"
        cache = os.environ["VLLM_XLA_CACHE_PATH"]
        return VllmServer(directory, log, *options, VLLM_XLA_CACHE_PATH=cache)

    return make


@pytest.fixture(scope="module")
def server(start):
    with start() as running:
        running.wait_until_ready()
        yield running


def _post(server: VllmServer, path: str, **body) -> dict:
    with httpx.Client(trust_env=False, timeout=60) as client:
        response = client.post(f"{server.url}{path}", json={"model": server.model, **body})
    assert response.status_code == 200, response.text
    return response.json()


def _events(lines) -> list[dict]:
    """The events of a stream, which ends as the API says."""
    *events, done = list(lines)
    assert done == "data: [DONE]"
    return [json.loads(event.removeprefix("data: ")) for event in events]


@pytest.fixture(scope="module")
def tokenizer(directory):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(directory)


def _expected(directory, tokenizer, prompt_ids: list[int]) -> str:
    found = greedy(directory, [prompt_ids], NEW_TOKENS)[0].token_ids
    return tokenizer.decode(found, skip_special_tokens=True)


# -- the API


def test_one_warning_names_the_virtual_tpu(server):
    warning = "No TPU and no other device of vLLM found: serving on the virtual TPU"
    assert server.text().count(warning) == 1
    assert server.text().count("No TPU") == 1


def test_a_start_shows_no_traceback_and_its_progress(server):
    assert "Traceback" not in server.text()
    for bucket in (8, 32, 64):
        assert f"Compiled the graphs of {bucket} tokens" in server.text()


def test_a_completion_equals_transformers(server, directory, tokenizer):
    answer = _post(server, "/v1/completions", prompt=PROMPT, **GREEDY)
    assert answer["choices"][0]["text"] == _expected(
        directory, tokenizer, tokenizer(PROMPT)["input_ids"]
    )
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == NEW_TOKENS


def test_a_chat_equals_transformers_streamed_and_whole(server, directory, tokenizer):
    messages = [{"role": "user", "content": PROMPT}]
    ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)
    expected = _expected(directory, tokenizer, ids["input_ids"])
    whole = _post(server, "/v1/chat/completions", messages=messages, **GREEDY)
    assert whole["choices"][0]["message"]["content"] == expected
    body = {"model": server.model, "messages": messages, "stream": True, **GREEDY}
    with (
        httpx.Client(trust_env=False, timeout=60) as client,
        client.stream("POST", f"{server.url}/v1/chat/completions", json=body) as response,
    ):
        events = _events(line for line in response.iter_lines() if line)
    deltas = [event["choices"][0]["delta"].get("content") or "" for event in events]
    assert "".join(deltas) == expected
    assert sum(map(bool, deltas)) > 1, "it came in one piece"


def test_logprobs_belong_to_the_tokens(server, tokenizer):
    plain = _post(server, "/v1/completions", prompt=PROMPT, **GREEDY)["choices"][0]
    # By their ids: tokens that are parts of a character share one text.
    request = {"logprobs": 3, "return_token_ids": True, "return_tokens_as_token_ids": True}
    scored = _post(server, "/v1/completions", prompt=PROMPT, **GREEDY, **request)["choices"][0]
    assert scored["text"] == plain["text"]
    assert tokenizer.decode(scored["token_ids"], skip_special_tokens=True) == plain["text"]
    found = scored["logprobs"]
    assert found["tokens"] == [f"token_id:{token}" for token in scored["token_ids"]]
    for token, chosen, top in zip(
        found["tokens"], found["token_logprobs"], found["top_logprobs"], strict=True
    ):
        assert len(top) == 3
        assert chosen == top[token] == max(top.values()) < 0
    assert len(found["token_logprobs"]) == NEW_TOKENS


def test_a_bad_parameter_gets_a_4xx(server):
    body = {"model": server.model, "prompt": PROMPT, "top_p": 7}
    response = httpx.post(f"{server.url}/v1/completions", json=body, trust_env=False)
    assert response.status_code == 400
    assert "top_p" in response.text


# -- the end


def _check(ending: Ending) -> None:
    assert ending.exit_code == 0, ending.log[-4000:]
    assert ending.orphans == []


def test_sigterm_ends_the_server_of_the_tests_above(server):
    _check(server.end_by(signal.SIGTERM))


@pytest.fixture(scope="module", params=["ctrl-c in a terminal", "kill -INT"])
def interrupted(request, start) -> Ending:
    """How an idle server ends by SIGINT, which a terminal sends to the engine's process too."""
    with start() as running:
        running.wait_until_ready()
        _post(running, "/v1/completions", prompt=PROMPT, **GREEDY)
        return running.end_by(signal.SIGINT, whole_group="terminal" in request.param)


def test_sigint_ends_an_idle_server(interrupted):
    _check(interrupted)


def test_sigint_shows_no_traceback(interrupted):
    assert "Traceback" not in interrupted.log


@pytest.mark.parametrize(
    ("number", "whole_group"),
    [(signal.SIGTERM, False), (signal.SIGINT, True)],
    ids=["kill", "ctrl-c in a terminal"],
)
def test_a_signal_ends_a_streamed_answer_and_then_the_server(start, number, whole_group):
    with start() as running:
        running.wait_until_ready()
        request = {"prompt": PROMPT, "ignore_eos": True, "max_tokens": 240}
        with streaming(running, **request) as lines:
            next(lines)
            ending = running.end_by(number, whole_group=whole_group)
            _check(ending)
            events = _events(lines)
    assert "Traceback" not in ending.log
    assert len(events) < 240
    assert events[-1]["choices"][0]["finish_reason"] == "abort"


def test_sigterm_before_the_engine_starts_ends_at_once(start):
    with start() as running:
        running.wait_for("serving on the virtual TPU")
        ending = running.end_by(signal.SIGTERM)
    assert ending.exit_code in (0, -signal.SIGTERM)
    assert ending.seconds < 10
    assert ending.orphans == []
    assert "Traceback" not in ending.log


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_the_engine_warms_up_ends_both(start, number):
    with start() as running:
        running.wait_for("Memory of the virtual TPU")
        ending = running.end_by(number)
    _check(ending)
    assert ending.seconds < 45
    assert "Traceback" not in ending.log
