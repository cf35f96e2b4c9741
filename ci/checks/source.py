"""The repository's files, as the checks read them."""

import ast
import subprocess
from pathlib import Path


def files(root: Path) -> list[Path]:
    """Every file that is or could be committed, relative to the root and sorted."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    return sorted({Path(name) for name in listed if name and (root / name).is_file()})


def python_files(files: list[Path], *folders: str) -> list[Path]:
    """The Python files among these that lie under one of the folders, or all of them."""
    return [
        path
        for path in files
        if path.suffix == ".py"
        and (not folders or any(path.is_relative_to(folder) for folder in folders))
    ]


def tree(path: Path) -> ast.Module:
    """Parses a Python file; one that can't be parsed is empty here, since ruff reports it."""
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError):
        return ast.Module(body=[], type_ignores=[])
