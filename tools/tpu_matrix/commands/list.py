"""`tpu-matrix list`: the rows, one a line."""

from __future__ import annotations

from tpu_matrix.commands.workspace import Workspace
from tpu_matrix.errors import ExitCode
from tpu_matrix.render.terminal import print_json, print_table


def run(workspace: Workspace, as_json: bool) -> ExitCode:
    """Prints what is claimed."""
    rows = list(workspace.matrix.rows())
    if as_json:
        print_json(
            [
                {
                    "id": row.id,
                    "slug": row.slug,
                    "family": row.family,
                    "checkpoint": row.item.checkpoint,
                    "hardware": row.item.hardware,
                    "tier": row.item.tier,
                }
                for row in rows
            ]
        )
    else:
        header = ["ROW", "CHECKPOINT", "HARDWARE", "TIER"]
        print_table(
            header,
            [[row.slug, row.item.checkpoint, row.item.hardware, row.item.tier] for row in rows],
        )
    return workspace.warn()
