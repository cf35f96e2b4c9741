"""A small matrix to break, and records that fit it."""

import datetime as dt
import json
import shutil
from pathlib import Path
from typing import Any

from tpu_matrix.evidence.record import Record
from tpu_matrix.matrix.claims import Matrix, SourcedRow
from tpu_matrix.matrix.finding import Finding
from tpu_matrix.matrix.load import load
from tpu_matrix.matrix.rules import Context, run_rules

EXAMPLE = Path(__file__).parent / "example_matrix"
NOW = dt.datetime(2026, 11, 30, 12, 0, tzinfo=dt.UTC)
COMMIT = "0123456789abcdef0123456789abcdef01234567"
VERSIONS = {
    "vllm": "0.33.0",
    "torch": "2.14.0",
    "torch_tpu": "0.2.0",
    "jax": "0.11.2",
    "libtpu": "0.0.52",
}
GOOD_METRICS = {
    "hardware": {"gsm8k.exact_match": 0.6},
    "virtual": {"demo.expected_answers": 1.0},
    "compiles": {"compile.hbm_bytes_per_device": 1e9},
}


def copy_example(directory: Path) -> Path:
    """Returns the root of a copy of the example matrix below `directory`."""
    return Path(shutil.copytree(EXAMPLE, directory / "support_matrix"))


def example_matrix() -> Matrix:
    """Returns the example matrix, loaded."""
    loaded = load(EXAMPLE)
    assert not loaded.findings
    return loaded.matrix


def example_row(slug: str = "tiny") -> SourcedRow:
    """Returns one row of the example matrix."""
    return example_matrix().by_slug[slug]


def lint(root: Path, now: dt.datetime = NOW, committed: tuple[Record, ...] = ()) -> list[Finding]:
    """Returns all findings of loading and of the rules, in order."""
    loaded = load(root)
    return sorted({*loaded.findings, *run_rules(Context(loaded.matrix, now, committed))})


def record_data(row: SourcedRow, kind: str = "hardware", **changes: Any) -> dict[str, Any]:
    """Returns a passing record of the row as JSON-ready data, with some fields changed."""
    on_tpu = {"device_kind": "TPU7x", "devices": 2}
    data: dict[str, Any] = {
        "row_id": row.id,
        "args_hash": row.args_hash,
        "kind": kind,
        "outcome": "pass",
        "checkpoint": row.item.checkpoint,
        "metrics": GOOD_METRICS[kind],
        "commit": COMMIT,
        "versions": VERSIONS,
        "detected": {"device_kind": "virtual", "devices": 1} if kind == "virtual" else on_tpu,
        "started": (NOW - dt.timedelta(hours=2)).isoformat(),
        "finished": (NOW - dt.timedelta(hours=1)).isoformat(),
        "log": "https://example.org/log",
        "producer": "a test",
    }
    return data | changes


def record(row: SourcedRow, kind: str = "hardware", **changes: Any) -> Record:
    """Returns the record of `record_data`."""
    return Record.model_validate_json(json.dumps(record_data(row, kind, **changes)))
