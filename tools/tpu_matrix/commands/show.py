"""`tpu-matrix show`: one row in full, with the exact command that it claims."""

from __future__ import annotations

import shlex
from typing import Any

from tpu_matrix.commands.workspace import Workspace
from tpu_matrix.errors import ExitCode
from tpu_matrix.matrix.claims import SourcedRow
from tpu_matrix.render.terminal import print_json, print_line
from tpu_matrix.wording import counted


def run(workspace: Workspace, name: str, as_json: bool) -> ExitCode:
    """Prints the claim, its place and its command."""
    row = workspace.row(name)
    if as_json:
        print_json(row_json(row))
    else:
        for label, value in _lines(row):
            print_line((f"{label:<11}", "bold"), (value, ""))
    return workspace.warn()


def row_json(row: SourcedRow) -> dict[str, Any]:
    """Returns a row as a program needs it to run and record it."""
    return {
        "id": row.id,
        "slug": row.slug,
        "args_hash": row.args_hash,
        "name": row.name,
        "link": row.model.link if row.model is not None else None,
        "claim": row.item.model_dump(mode="json"),
        "devices": row.hardware.devices if row.hardware is not None else None,
        "metrics": {name: check.metric_key for name, check in row.item.checks.items()},
        "argv": list(row.argv),
        "location": str(row.locate()),
    }


def _lines(row: SourcedRow) -> list[tuple[str, str]]:
    claim = row.item
    lines = [
        ("row", row.id),
        ("model", row.name + (f" ({row.model.link})" if row.model is not None else "")),
        ("checkpoint", claim.checkpoint + (f" at {claim.revision}" if claim.revision else "")),
        ("hardware", _hardware(row)),
        ("tier", claim.tier),
        ("features", ", ".join(claim.features) or "none"),
    ]
    lines += [
        ("check", f"{name}: {check.metric_key} at least {check.at_least:g}")
        for name, check in claim.checks.items()
    ]
    if claim.quarantine is not None:
        quarantine = claim.quarantine
        until = f"until {quarantine.until} by {quarantine.owner}, {quarantine.issue}"
        lines.append(("quarantine", f"{until}: {quarantine.reason}"))
    lines += [("note", claim.note)] if claim.note else []
    return [*lines, ("written at", str(row.locate())), ("command", shlex.join(row.argv))]


def _hardware(row: SourcedRow) -> str:
    if row.hardware is None:
        return f"{row.item.hardware} (not in hardware.yaml)"
    slice_, generation = row.hardware.slice, row.hardware.generation
    return (
        f"{slice_.id}: {counted(slice_.chips, 'chip')}, {counted(slice_.cores, 'core')}, "
        f"{counted(row.hardware.devices, 'device')} of {generation.hbm_per_device_gib} GiB, {slice_.status}"
    )
