"""`tpu-matrix status`: what the evidence says about the rows at this moment."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from tpu_matrix.commands.workspace import Workspace, shown
from tpu_matrix.errors import ExitCode
from tpu_matrix.evidence.record import Kind
from tpu_matrix.matrix.claims import SourcedRow
from tpu_matrix.matrix.status import KINDS, Cell, matrix_cells
from tpu_matrix.render.pages import COLUMNS, anchor
from tpu_matrix.render.terminal import (
    print_json,
    print_line,
    print_plain,
    print_table,
    status_style,
)
from tpu_matrix.wording import counted

Cells = Mapping[Kind, Cell]


def run(
    workspace: Workspace,
    name: str | None,
    now: dt.datetime,
    require: Kind | None,
    as_json: bool,
) -> ExitCode:
    """Prints statuses; with `require`, any cell of that kind without a pass is a failure."""
    rows = [workspace.row(name)] if name is not None else list(workspace.matrix.rows())
    evidence = workspace.evidence()
    cells = matrix_cells(workspace.matrix, evidence.records, now)
    if as_json:
        print_json([_row_json(row, cells[row.id]) for row in rows])
    elif name is not None:
        _print_row(workspace, rows[0], cells[rows[0].id])
    else:
        _print_rows(rows, cells)
    code = workspace.warn(*evidence.findings)
    if require is not None and any(cells[row.id][require].status != "pass" for row in rows):
        return ExitCode.FINDINGS
    return code


def _print_rows(rows: Sequence[SourcedRow], cells: Mapping[str, Cells]) -> None:
    header = ["ROW", "HARDWARE", "TIER", *(COLUMNS[kind].upper() for kind in KINDS)]
    lines = [
        [
            row.slug,
            row.item.hardware,
            row.item.tier,
            *(cells[row.id][kind].status for kind in KINDS),
        ]
        for row in rows
    ]
    print_table(header, lines)


def _print_row(workspace: Workspace, row: SourcedRow, cells: Cells) -> None:
    title = f"  {row.name} on {row.item.hardware}, tier {row.item.tier}"
    print_line((row.slug, "bold"), (title, ""))
    for kind in KINDS:
        cell = cells[kind]
        status = (f"{cell.status:<15}", status_style(cell.status))
        print_line((f"  {COLUMNS[kind]:<16}", ""), status, (cell.reason, ""))
        print_plain(*(" " * 18 + line for line in _run_lines(cell)))
    print_plain(f"  table: {shown(workspace.docs / f'{row.family}.md')}#{anchor(row)}")


def _run_lines(cell: Cell) -> list[str]:
    record = cell.record
    if record is None:
        return []
    versions = ", ".join(f"{k} {v}" for k, v in record.versions.model_dump().items())
    devices = counted(record.detected.devices, f"{record.detected.device_kind} device")
    finished = record.finished.astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
    return [
        f"{finished} on {devices}, commit {record.commit}, attempt {record.attempt}",
        versions,
        f"log: {record.log}; by {record.producer}",
    ]


def _row_json(row: SourcedRow, cells: Cells) -> dict[str, Any]:
    return {
        "id": row.id,
        "slug": row.slug,
        "tier": row.item.tier,
        "cells": {kind: _cell_json(cells[kind]) for kind in KINDS},
    }


def _cell_json(cell: Cell) -> dict[str, Any]:
    record = None if cell.record is None else cell.record.model_dump(mode="json", by_alias=True)
    return {"status": cell.status, "reason": cell.reason, "record": record}
