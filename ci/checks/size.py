"""Files stay under 400 lines and functions under 60."""

import ast
from pathlib import Path

from ci.checks import source

FILE_LINES = 400
FUNCTION_LINES = 60
# What is longer and why, as `path` or `path:function` with its present length. Entries may only shrink and leave.
ALLOWED: dict[str, int] = {}


def problems(root: Path, files: list[Path], allowed: dict[str, int] = ALLOWED) -> list[str]:
    """Reports what is too long, and entries of the allow-list that are wider than they need to be."""
    lengths = {}
    for path in source.python_files(files):
        lengths[str(path)] = len((root / path).read_text(encoding="utf-8").splitlines())
        lengths.update(_functions(str(path), source.tree(root / path)))
    found = []
    for place, length in lengths.items():
        limit, kind = (FUNCTION_LINES, "function") if ":" in place else (FILE_LINES, "file")
        if length > allowed.get(place, limit):
            most = allowed.get(place, limit)
            found.append(
                f"{place}: {kind} of {length} lines, allowed are {most}; split it along a concept"
            )
    for place, length in allowed.items():
        actual = lengths.get(place, 0)
        limit = FUNCTION_LINES if ":" in place else FILE_LINES
        if actual <= limit:
            found.append(
                f"{place}: no longer too long; remove it from ALLOWED in ci/checks/size.py"
            )
        elif actual < length:
            found.append(f"{place}: {actual} lines, ALLOWED says {length}; lower it to {actual}")
    return found


def _functions(path: str, node: ast.AST, prefix: str = "") -> dict[str, int]:
    lengths = {}
    for child in ast.iter_child_nodes(node):
        name = prefix
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}.{child.name}" if prefix else child.name
            if not isinstance(child, ast.ClassDef):
                lengths[f"{path}:{name}"] = (child.end_lineno or child.lineno) - child.lineno + 1
        lengths.update(_functions(path, child, name))
    return lengths
