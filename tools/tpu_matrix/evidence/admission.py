"""Which records count: the reasons for which one does not prove anything about a row."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tpu_matrix.errors import RefusedRecordError
from tpu_matrix.evidence.record import UNKNOWN_COMMIT, VIRTUAL_DEVICE_KIND, Kind, Record
from tpu_matrix.evidence.store import EvidenceStore
from tpu_matrix.matrix import suggestion
from tpu_matrix.matrix.claims import Matrix, SourcedRow
from tpu_matrix.matrix.model import Check
from tpu_matrix.matrix.validation import describe
from tpu_matrix.wording import counted

CLOCK_TOLERANCE = dt.timedelta(minutes=5)
"""How far the clocks of a runner and of the reader may differ."""

HBM_METRIC = "compile.hbm_bytes_per_device"
"""What a `compiles` record reports: the memory that the compiled graphs need."""

_GIB = 1 << 30


def record_evidence(
    data: bytes | str | dict[str, Any],
    matrix: Matrix,
    store: EvidenceStore,
    now: dt.datetime,
    where: str | Path = "record",
) -> tuple[Record, bool]:
    """Admits one record to the store.

    Args:
        data: the record as JSON, or as JSON-ready data.
        matrix: the claims it has to agree with.
        store: where it goes.
        now: the present time, for records from the future.
        where: what to call the record in an error.

    Returns:
        The record, and whether it was new.

    Raises:
        RefusedRecordError: with every reason, the record untouched.
    """
    remedy = "run the row again as `tpu-matrix show` prints it, or correct the producer"
    try:
        text = json.dumps(data) if isinstance(data, dict) else data
        record = Record.model_validate_json(text)
    except ValidationError as error:
        raise RefusedRecordError(where, describe(Record, error), remedy) from None
    slug = record.row_id.partition(":")[0]
    row = matrix.by_slug.get(slug)
    if row is None:
        remedy = suggestion.remedy(slug, matrix.by_slug, "row")
        raise RefusedRecordError(where, [f"there is no row {slug!r}"], remedy)
    reasons = refusals(row, record, now)
    if reasons:
        raise RefusedRecordError(where, reasons, remedy)
    return record, store.append(record)


def refusals(row: SourcedRow, record: Record, now: dt.datetime) -> list[str]:
    """Returns every reason for which the store does not take the record."""
    reasons = disqualifications(row, record, now)
    for name, check in checks_of(row, record.kind).items():
        if check.at_least <= 0:
            reasons.append(f"the threshold of {name} is {check.at_least:g}; every run passes it")
    if record.outcome == "pass":
        reasons += [f"it claims a pass, but {gap}" for gap in gaps(row, record)]
    return reasons


def disqualifications(row: SourcedRow, record: Record, now: dt.datetime) -> list[str]:
    """Returns every reason for which the record is not about the row as claimed."""
    return [*_identity(row, record), *_run(row, record, now)]


def checks_of(row: SourcedRow, kind: Kind) -> dict[str, Check]:
    """Returns the checks that a record of this kind has to answer."""
    if kind == "hardware":
        return {name: check for name, check in row.item.checks.items() if name != "virtual"}
    if kind == "virtual":
        return {name: check for name, check in row.item.checks.items() if name == "virtual"}
    return {}


def gaps(row: SourcedRow, record: Record) -> list[str]:
    """Returns everything that separates the record's metrics from a pass of the row today."""
    if record.kind == "compiles":
        return list(_memory_gaps(row, record))
    checks = checks_of(row, record.kind)
    if not checks:
        return [f"the row has no check that a {record.kind} run could pass"]
    found = []
    for check in checks.values():
        value = record.metrics.get(check.metric_key)
        if value is None:
            found.append(f"{check.metric_key} is missing")
        elif check.at_least <= 0:
            found.append(f"{check.metric_key} has a threshold of {check.at_least:g}")
        elif value < check.at_least:
            found.append(f"{check.metric_key} is {value:g}, below {check.at_least:g}")
    return found


def _identity(row: SourcedRow, record: Record) -> Iterator[str]:
    if record.row_id != row.id or record.args_hash != row.args_hash:
        yield f"it is about {record.row_id}, while the row is now {row.id}"
    if record.checkpoint != row.item.checkpoint:
        yield f"it ran {record.checkpoint}, while the row tests {row.item.checkpoint}"


def _run(row: SourcedRow, record: Record, now: dt.datetime) -> Iterator[str]:
    if record.finished > now + CLOCK_TOLERANCE:
        yield f"it finished in the future ({record.finished.isoformat()})"
    detected = record.detected
    if record.kind == "virtual":
        if detected.device_kind != VIRTUAL_DEVICE_KIND:
            yield f"a virtual run detected {detected.device_kind!r}"
        return
    if record.commit == UNKNOWN_COMMIT or record.commit.endswith("-dirty"):
        yield f"the commit {record.commit!r} cannot be checked out"
    if row.hardware is None:
        yield f"the row's hardware {row.item.hardware!r} is not in hardware.yaml"
        return
    kinds = row.hardware.generation.device_kinds
    if detected.device_kind not in kinds:
        yield f"it ran on {detected.device_kind!r}, while {row.item.hardware} is {' or '.join(kinds)}"
    if detected.devices != row.hardware.devices:
        yield f"it saw {counted(detected.devices, 'device')}, while {row.item.hardware} has {row.hardware.devices}"


def _memory_gaps(row: SourcedRow, record: Record) -> Iterator[str]:
    needed = record.metrics.get(HBM_METRIC)
    if needed is None or needed <= 0:
        yield f"{HBM_METRIC} is missing"
    elif row.hardware is None:
        yield f"the memory of {row.item.hardware!r} is not known"
    elif needed > row.hardware.generation.hbm_per_device_gib * _GIB:
        present_gib = row.hardware.generation.hbm_per_device_gib
        yield f"it needs {needed / _GIB:.1f} GiB per device, of {present_gib} present"
