"""Stable ids: a row whose command, weights or hardware change is another row."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence

from tpu_matrix.matrix.model import SLUG_PATTERN, Row

SHORT_HASH_LENGTH = 8

ROW_ID_PATTERN = re.compile(
    f"(?P<slug>{SLUG_PATTERN.pattern}):(?P<hardware>{SLUG_PATTERN.pattern}):(?P<hash>[0-9a-f]{{{SHORT_HASH_LENGTH}}})"
)


def args_hash(row: Row, argv: Sequence[str]) -> str:
    """Returns the SHA-256 of everything that changes what is tested, in hexadecimal.

    The command holds the checkpoint, revision, quantisation, data types, parallelism,
    features, lengths and serve arguments; only what it cannot say is added.  Thresholds
    are left out on purpose: a status compares old metrics with the present threshold.
    """
    subject = {
        "argv": list(argv),
        "hardware": row.hardware,
        "idle_devices": row.parallel.idle,
        "weights": row.weights,
    }
    canonical = json.dumps(subject, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def row_id(slug: str, hardware: str, full_hash: str) -> str:
    """Returns the stable id, `slug:hardware:hash`."""
    return f"{slug}:{hardware}:{full_hash[:SHORT_HASH_LENGTH]}"


def same_claim(left: str, right: str) -> bool:
    """Whether two row ids name the same slug on the same hardware, whatever their hash."""
    return left.rpartition(":")[0] == right.rpartition(":")[0]
