"""Named cases of paged attention, shared by the contract test and the benchmark."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """One ragged batch.

    Attributes:
        name: What is special about it.
        q_lens: New tokens of each request.
        kv_lens: Tokens of each request including the new ones.
        pad_tokens: Padding tokens after the last request.
        pad_requests: Padded requests after the last one.
    """

    name: str
    q_lens: tuple[int, ...]
    kv_lens: tuple[int, ...]
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 64
    page_size: int = 128
    sliding_window: int | None = None
    soft_cap: float | None = None
    pad_tokens: int = 0
    pad_requests: int = 0
    dtype: str = "float32"


CASES = (
    Case("one token of one request", (1,), (1,)),
    Case("decode at page boundaries", (1, 1, 1, 1), (127, 128, 129, 257)),
    Case("decode with padded rows and requests", (1, 1), (5, 300), pad_tokens=6, pad_requests=6),
    Case("prefill that ends inside a page", (200,), (200,), pad_tokens=56),
    Case("prefill of exactly one tile", (64,), (64,), pad_tokens=64),
    Case("chunked prefill after a cached prefix", (70, 3), (270, 131), pad_tokens=55),
    Case("prefill and decode in one batch", (1, 90, 1, 33), (140, 90, 1, 161), pad_tokens=3),
    Case("zero-length requests in between", (0, 5, 0, 1), (0, 5, 0, 77), pad_tokens=2),
    Case("zero-length requests among tiles", (0, 65, 0, 1), (0, 65, 0, 77), pad_tokens=62),
    Case("many heads to one KV head", (3, 1), (40, 200), heads=8, kv_heads=1),
    Case("one query head to each KV head", (3, 1), (40, 200), heads=3, kv_heads=3),
    Case("head_dim 80", (3, 1), (40, 200), head_dim=80),
    Case("head_dim 256", (3, 1), (40, 200), head_dim=256),
    Case("page size 1", (2, 1), (5, 9), page_size=1),
    Case("page size 16", (40, 1), (40, 77), page_size=16),
    Case("page size that does not divide the block", (40, 1), (40, 300), page_size=48),
    Case("page size above the block", (40, 1), (300, 513), page_size=256),
    Case("window smaller than a page", (1, 1), (130, 300), sliding_window=5),
    Case("window not aligned to the block", (70, 1), (400, 300), sliding_window=131),
    Case("window whose first block is not the first", (1, 1), (700, 650), sliding_window=16),
    Case("window of one token", (5, 1), (5, 9), sliding_window=1),
    Case("soft cap of the logits' size", (5, 1), (140, 9), soft_cap=2.0),
    Case("more than 32,767 tokens", (1,), (33_000,), heads=1, kv_heads=1),
    Case("bfloat16 cache", (5, 1), (140, 9), dtype="bfloat16"),
)
