"""Each distribution imports only what it declares, so that it can be installed alone."""

import ast
import sys
from pathlib import Path

from ci.checks import source

ALLOWED = {
    "kernels/torchtpu_kernels": {"torchtpu_kernels", "jax", "jaxlib", "jaxtyping", "numpy"},
    "tools/tpu_matrix": {"tpu_matrix", "pydantic", "ruamel", "yaml", "jinja2", "typer", "rich"},
    # Runs before anything is installed.
    "ci/setup": {"ci"},
}


def problems(root: Path, files: list[Path]) -> list[str]:
    """Reports imports of packages that the folder's distribution does not depend on."""
    found = []
    for folder, allowed in ALLOWED.items():
        for path in source.python_files(files, folder):
            for line, name in imports(source.tree(root / path)):
                if name not in allowed and name not in sys.stdlib_module_names:
                    names = ", ".join(sorted(allowed))
                    found.append(f"{path}:{line}: imports {name}; {folder} may import only {names}")
    return found


def imports(tree: ast.Module) -> list[tuple[int, str]]:
    """Line and top-level package of every absolute import, also those inside functions."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name.split(".")[0]) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            found.append((node.lineno, node.module.split(".")[0]))
    return found
