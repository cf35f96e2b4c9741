"""Asks a served model over the OpenAI API."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import openai

_REQUEST_TIMEOUT_S = 180.0


@dataclass(frozen=True)
class Answer:
    """A streamed answer with its clock."""

    text: str
    tokens: int
    first_token_s: float
    total_s: float

    @property
    def tokens_per_s(self) -> float | None:
        """Tokens per second after the first one; None for an answer of one token."""
        if self.tokens < 2 or self.total_s <= self.first_token_s:
            return None
        return (self.tokens - 1) / (self.total_s - self.first_token_s)


@dataclass(frozen=True)
class Tokens:
    """A chat's prompt and its continuation as the server tokenised and sampled them."""

    prompt_token_ids: list[int]
    token_ids: list[int]


class Chat:
    """Greedy chats of one user message with one served model."""

    def __init__(self, url: str, model: str) -> None:
        """Connects to ``url`` directly: a proxy of the environment is not for the loopback."""
        self._client = openai.OpenAI(
            base_url=f"{url}/v1",
            api_key="none",
            max_retries=0,
            http_client=openai.DefaultHttpxClient(trust_env=False, timeout=_REQUEST_TIMEOUT_S),
        )
        self._model = model

    def stream(self, question: str, max_tokens: int, on_text: Callable[[str], None]) -> Answer:
        """Asks ``question``; hands each piece of the answer to ``on_text`` as it arrives."""
        start = time.perf_counter()
        first_s, pieces, tokens = None, [], 0
        for chunk in self._client.chat.completions.create(
            **self._request(question, max_tokens),
            stream=True,
            stream_options={"include_usage": True},
        ):
            if chunk.usage is not None:
                tokens = chunk.usage.completion_tokens
            if chunk.choices and (piece := chunk.choices[0].delta.content):
                first_s = first_s or time.perf_counter() - start
                pieces.append(piece)
                on_text(piece)
        total_s = time.perf_counter() - start
        return Answer("".join(pieces), tokens, first_s or total_s, total_s)

    def token_ids(self, question: str, tokens: int) -> Tokens:
        """Continues ``question`` by exactly ``tokens`` tokens, end-of-sequence ignored."""
        response = self._client.chat.completions.create(
            **self._request(question, tokens),
            extra_body={"ignore_eos": True, "return_token_ids": True},
        )
        # vLLM's additions to the response; the client keeps what it does not know.
        prompt_token_ids = (response.model_extra or {})["prompt_token_ids"]
        token_ids = (response.choices[0].model_extra or {})["token_ids"]
        return Tokens(list(prompt_token_ids), list(token_ids))

    def _request(self, question: str, max_tokens: int) -> dict[str, Any]:
        return {
            "model": self._model,
            "messages": [{"role": "user", "content": question}],
            "temperature": 0.0,
            "max_completion_tokens": max_tokens,
        }
