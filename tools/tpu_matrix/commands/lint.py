"""`tpu-matrix lint`: every mistake in the claims and the committed evidence, at once."""

from __future__ import annotations

from tpu_matrix.commands.workspace import Workspace, utc_now
from tpu_matrix.errors import ExitCode
from tpu_matrix.matrix.rules import Context, run_rules
from tpu_matrix.render.terminal import print_json, print_plain
from tpu_matrix.wording import counted


def run(workspace: Workspace, as_json: bool) -> ExitCode:
    """Prints every finding, ordered by file and line."""
    from tpu_matrix.evidence.store import read_file

    committed = read_file(workspace.matrix.snapshot)
    context = Context(workspace.matrix, utc_now(), committed.records)
    findings = {*workspace.loaded.findings, *committed.findings, *run_rules(context)}
    ordered = sorted(findings)
    if as_json:
        print_json({"findings": [finding.as_json() for finding in ordered]})
    else:
        print_plain(*ordered)
        rows = sum(1 for _ in workspace.matrix.rows())
        print_plain(f"{counted(rows, 'row')}, {counted(len(ordered), 'finding')}", to_stderr=True)
    return ExitCode.FINDINGS if ordered else ExitCode.FINE
