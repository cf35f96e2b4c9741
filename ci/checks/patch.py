"""Upstream objects are written to only under plugin/vllm_torchtpu/patches, where each write has its record."""

import ast
from pathlib import Path

from ci.checks import source

FOLDERS = ("plugin", "kernels", "demo", "benchmarks")
PATCHES = "plugin/vllm_torchtpu/patches"
OWN = {"vllm_torchtpu", "torchtpu_kernels", "tpu_matrix", "demo", "benchmarks"}
# Attributes that exist to be set.
HOOKS = {"os.environ", "sys.excepthook", "threading.excepthook"}
WRITERS = {"setattr", "delattr"}


def problems(root: Path, files: list[Path]) -> list[str]:
    """Reports assignments to attributes of modules, classes and objects that were imported from elsewhere."""
    found = []
    for path in source.python_files(files, *FOLDERS):
        if not path.is_relative_to(PATCHES):
            tree = source.tree(root / path)
            upstream = _imported(tree)
            written = [target for node in ast.walk(tree) for target in _written(node)]
            found += [
                f"{path}:{target.lineno}: writes to {ast.unparse(target)}, which belongs to upstream; "
                f"use an extension point, or a recorded patch under {PATCHES}"
                for target in written
                if _belongs_to(target, upstream)
            ]
    return found


def _imported(tree: ast.Module) -> dict[str, str]:
    """Names bound by an import from elsewhere, each with its dotted origin."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.split(".")[0]
                names[alias.asname or root] = alias.name if alias.asname else root
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return {name: origin for name, origin in names.items() if origin.split(".")[0] not in OWN}


def _written(node: ast.AST) -> list[ast.expr]:
    """The attributes that this statement or call assigns, deletes or sets by name."""
    if isinstance(node, ast.Assign | ast.Delete):
        targets = list(node.targets)
    elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.For):
        targets = [node.target]
    elif (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in WRITERS
        and node.args
    ):
        # The object itself is the target; give it an attribute so that both forms look the same.
        attribute = ast.Attribute(value=node.args[0], attr="...", ctx=ast.Store())
        return [ast.copy_location(attribute, node)]
    else:
        return []
    flat = []
    for target in targets:
        flat += target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    return [target for target in flat if isinstance(target, ast.Attribute | ast.Subscript)]


def _belongs_to(target: ast.expr, upstream: dict[str, str]) -> bool:
    """Whether a write to this target changes an upstream module, class or object."""
    path = []
    while isinstance(target, ast.Attribute | ast.Subscript):
        path.insert(0, target.attr if isinstance(target, ast.Attribute) else "[]")
        target = target.value
    if not (isinstance(target, ast.Name) and target.id in upstream):
        return False
    full = [*upstream[target.id].split("."), *path]
    is_setting = full[0] == "torch" and full[-2] == "config"
    return ".".join(full[:2]) not in HOOKS and not is_setting
