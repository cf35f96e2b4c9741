"""`tpu-matrix render` and `tpu-matrix schema`: generated files, written or compared."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tpu_matrix.commands.workspace import Workspace, shown
from tpu_matrix.errors import ExitCode
from tpu_matrix.render import output
from tpu_matrix.render.terminal import print_plain


def render(workspace: Workspace, directory: Path | None, check: bool) -> ExitCode:
    """Writes the pages; evidence beyond the committed snapshot counts only if named."""
    from tpu_matrix.evidence.store import read_file
    from tpu_matrix.render.markdown import GENERATED
    from tpu_matrix.render.pages import render_pages

    matrix = workspace.sound_matrix()
    named = workspace.evidence_option is not None
    evidence = workspace.evidence() if named else read_file(workspace.matrix.snapshot)
    code = workspace.warn(*evidence.findings)
    directory = directory or workspace.docs
    files = {
        directory / name: page for name, page in render_pages(matrix, evidence.records).items()
    }
    left_over = [
        path
        for path in sorted(directory.rglob("*.md"))
        if path not in files and path.read_bytes().startswith(GENERATED.encode())
    ]
    return max(code, _write_or_compare(files, left_over, check, "tpu-matrix render"))


def schema(workspace: Workspace, check: bool) -> ExitCode:
    """Writes the JSON Schemas beside the claims."""
    from tpu_matrix.matrix.schema import schema_files

    directory = workspace.root / "schema"
    files = {directory / name: content for name, content in schema_files().items()}
    left_over = [path for path in sorted(directory.glob("*.schema.json")) if path not in files]
    return _write_or_compare(files, left_over, check, "tpu-matrix schema")


def _write_or_compare(
    files: Mapping[Path, str], left_over: list[Path], check: bool, command: str
) -> ExitCode:
    if not check:
        changed = set(output.write(files, left_over))
        for path in (*files, *left_over):
            print_plain(f"{shown(path)}{'' if path in changed else ' (unchanged)'}")
        return ExitCode.FINE
    found = output.drift(files, left_over)
    for path, problem in found:
        print_plain(f"{shown(path)}: {problem}; run `{command}` and commit the result")
    return ExitCode.FINDINGS if found else ExitCode.FINE
