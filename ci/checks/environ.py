"""Environment variables are read and written in one file of the plugin, and in none of the other distributions."""

import ast
from pathlib import Path

from ci.checks import source

FOLDERS = ("plugin", "kernels", "tools")
ONLY = Path("plugin/vllm_torchtpu/envs.py")
NAMES = {"environ", "getenv", "putenv", "unsetenv", "environb"}


def problems(root: Path, files: list[Path]) -> list[str]:
    """Reports every use of os.environ and its kin outside envs.py."""
    found = []
    for path in source.python_files(files, *FOLDERS):
        if path != ONLY:
            found += [
                f"{path}:{line}: touches the environment; declare the variable in {ONLY}"
                for line in _uses(source.tree(root / path))
            ]
    return found


def _uses(tree: ast.Module) -> list[int]:
    """The lines that use os.environ or its kin."""
    lines = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id == "os" and node.attr in NAMES:
                lines.append(node.lineno)
        elif isinstance(node, ast.ImportFrom) and node.module == "os":
            lines += [node.lineno for alias in node.names if alias.name in NAMES]
    return lines
