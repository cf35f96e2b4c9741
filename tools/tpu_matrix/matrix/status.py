"""The status of a row: a pure function of its claim, the evidence and a given time.

Only one path leads to `pass`: a fresh record of the same arguments, on the row's own
hardware, whose metrics reach the thresholds of today, with no failure beside it.
Whatever else happens ends in another status.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from tpu_matrix.evidence.admission import checks_of, disqualifications, gaps
from tpu_matrix.evidence.record import UNKNOWN_COMMIT, Kind, Record
from tpu_matrix.matrix.claims import Matrix, SourcedRow
from tpu_matrix.matrix.identity import same_claim

Status = Literal[
    "not-applicable",
    "pass",
    "never-run",
    "stale",
    "quarantined",
    "blocked",
    "infra-error",
    "flaky",
    "timeout",
    "oom",
    "fail",
]

STATUSES: tuple[Status, ...] = get_args(Status)
"""Every status, from best to worst: the order of the roll-up."""

KINDS: tuple[Kind, ...] = get_args(Kind)
"""The columns, of which only the first speaks about the row's own hardware."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """One row seen through one kind of evidence."""

    kind: Kind
    status: Status
    reason: str
    record: Record | None = None
    """The record that decided, where there is one."""


def cell_status(
    row: SourcedRow,
    kind: Kind,
    records: Iterable[Record],
    now: dt.datetime,
    fresh_for_days: int | None,
) -> Cell:
    """Derives the status of one cell.

    Args:
        row: the claim.
        kind: the column.
        records: any evidence; what is about other rows or kinds is left aside.
        now: the time at which the status is asked for, with its time zone.
        fresh_for_days: how long evidence of the row's tier counts; None if unknown.
    """
    own = [r for r in records if r.kind == kind and same_claim(r.row_id, row.id)]
    quarantine = row.item.quarantine
    if (
        kind == "hardware"
        and quarantine is not None
        and now.astimezone(dt.UTC).date() <= quarantine.until
    ):
        reason = f"until {quarantine.until} by {quarantine.owner}: {quarantine.reason}"
        return Cell(kind, "quarantined", reason, _latest(own))
    if not own:
        return _without_evidence(row, kind)
    current = [r for r in own if r.args_hash == row.args_hash and r.row_id == row.id]
    if not current:
        return Cell(kind, "stale", "the claim has changed since the last run", _latest(own))
    counted = [r for r in current if not disqualifications(row, r, now)]
    ran = [r for r in counted if r.outcome != "skipped"]
    if not ran:
        return Cell(kind, "never-run", _why_nothing_ran(row, current, counted, now))
    return _judged(row, kind, ran, now, fresh_for_days)


def row_cells(
    row: SourcedRow, records: Sequence[Record], now: dt.datetime, fresh_for_days: int | None
) -> dict[Kind, Cell]:
    """Returns every cell of a row, by kind."""
    return {kind: cell_status(row, kind, records, now, fresh_for_days) for kind in KINDS}


def matrix_cells(
    matrix: Matrix, records: Iterable[Record], now: dt.datetime
) -> dict[str, dict[Kind, Cell]]:
    """Returns the cells of all rows, by stable id and kind."""
    by_slug: dict[str, list[Record]] = {}
    for record in records:
        by_slug.setdefault(record.row_id.partition(":")[0], []).append(record)
    return {
        row.id: row_cells(
            row, by_slug.get(row.slug, ()), now, matrix.fresh_for_days.get(row.item.tier)
        )
        for row in matrix.rows()
    }


def worst(statuses: Iterable[Status]) -> Status:
    """Returns the worst of some statuses on the same hardware; of none, `never-run`."""
    return STATUSES[
        max((STATUSES.index(status) for status in statuses), default=STATUSES.index("never-run"))
    ]


def _without_evidence(row: SourcedRow, kind: Kind) -> Cell:
    if kind == "virtual" and not checks_of(row, kind):
        return Cell(kind, "not-applicable", "the row has no virtual check")
    return Cell(kind, "never-run", "no run is recorded")


def _why_nothing_ran(
    row: SourcedRow, current: Sequence[Record], counted: Sequence[Record], now: dt.datetime
) -> str:
    if counted:
        return f"skipped: {_newest(counted).reason}"
    newest = _newest(current)
    reasons = "; ".join(disqualifications(row, newest, now))
    return f"{len(current)} recorded, but none counts: {reasons}"


def _judged(
    row: SourcedRow,
    kind: Kind,
    ran: Sequence[Record],
    now: dt.datetime,
    fresh_for_days: int | None,
) -> Cell:
    newest = _newest(ran)
    if fresh_for_days is None:
        return Cell(kind, "stale", f"the tier {row.item.tier!r} is not in tiers.yaml", newest)
    limit = dt.timedelta(days=fresh_for_days)
    if now - newest.finished > limit:
        reason = f"{newest.outcome} on {newest.day}, older than {fresh_for_days} days"
        return Cell(kind, "stale", reason, newest)
    # The caller leaves skipped runs out; should one come here, it reads as never run.
    if newest.outcome != "pass":
        status = "never-run" if newest.outcome == "skipped" else newest.outcome
        return Cell(kind, status, newest.reason or _metrics_text(newest), newest)
    missing = gaps(row, newest)
    if missing:
        return Cell(kind, "fail", "; ".join(missing), newest)
    fresh = [r for r in ran if now - r.finished <= limit]
    failures = [r for r in fresh if _contradicts(row, r, newest)]
    if failures:
        reason = (
            f"{len(failures)} failed at the same commit, the last by {_newest(failures).outcome}"
        )
        return Cell(kind, "flaky", reason, newest)
    return Cell(kind, "pass", _metrics_text(newest), newest)


def _contradicts(row: SourcedRow, record: Record, passed: Record) -> bool:
    # A dirty or unknown tree may have changed between two runs, so it proves nothing.
    if (
        passed.commit == UNKNOWN_COMMIT
        or passed.commit.endswith("-dirty")
        or record.commit != passed.commit
    ):
        return False
    failed = record.outcome in ("fail", "oom", "timeout")
    return failed or (record.outcome == "pass" and bool(gaps(row, record)))


def _metrics_text(record: Record) -> str:
    return ", ".join(f"{key} {value:g}" for key, value in sorted(record.metrics.items()))


def _latest(records: Sequence[Record]) -> Record | None:
    return _newest(records) if records else None


def _newest(records: Sequence[Record]) -> Record:
    """Returns the record that finished last; of simultaneous ones, the worst."""
    return max(records, key=lambda r: (r.finished, r.attempt, r.outcome != "pass", r.id))
