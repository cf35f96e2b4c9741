"""Resolves every version anew and writes it into pyproject.toml: `make pins`.

The pins are constraints rather than a lock file, because a lock file names hosts.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ci.setup import uv
from ci.setup.bootstrap import ROOT, UV_FOLDER
from ci.setup.failure import SetupFailureError

BLOCKS = {
    "constraints": ("constraint-dependencies", ["--all-packages", "--all-groups"]),
    "build constraints": ("build-constraint-dependencies", ["--only-group", "build"]),
}
EXPORT = [
    "--no-hashes",
    "--no-emit-workspace",
    "--no-annotate",
    "--no-header",
    "--quiet",
    "--no-python-downloads",
]


def main() -> int:
    """Rewrites the pins and says how many there are."""
    try:
        command = uv.find_or_install(UV_FOLDER, sys.executable, print)
        declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        text = resolve(command, declared)
        (ROOT / "pyproject.toml").write_text(text, encoding="utf-8")
    except SetupFailureError as failure:
        print("\n".join("pins: " + sentence for sentence in failure.sentences), file=sys.stderr)
        return 1
    print(f"pins: {len(pinned(text))} versions pinned in pyproject.toml")
    return 0


def resolve(command: str, declared: str) -> str:
    """Returns this pyproject.toml with its pins replaced by a fresh resolution's.

    Raises:
        SetupFailureError: if uv can't resolve it.
    """
    with tempfile.TemporaryDirectory() as scratch:
        for name in ("plugin", "kernels", "tools"):
            (Path(scratch) / name).mkdir()
            shutil.copy(str(ROOT / name / "pyproject.toml"), str(Path(scratch) / name))
        unpinned = declared
        for block in BLOCKS:
            unpinned = with_block(unpinned, block, [])
        (Path(scratch) / "pyproject.toml").write_text(unpinned, encoding="utf-8")
        text = declared
        for block, (_, selection) in BLOCKS.items():
            export = [command, "export", "--python", sys.executable, *EXPORT, *selection]
            answer = subprocess.run(
                export,
                cwd=scratch,
                env=uv.environment_variables(Path(scratch) / ".venv"),
                capture_output=True,
                text=True,
                check=False,
            )
            if answer.returncode != 0:
                raise SetupFailureError(
                    uv.explain(answer.stderr, "uv could not resolve the versions")
                )
            text = with_block(text, block, requirements(answer.stdout))
        return text


def requirements(exported: str) -> list[str]:
    """Picks the pins from an export; markers stay only where a package has several versions."""
    lines = [re.sub(r" *\\$", "", line).strip() for line in exported.splitlines()]
    lines = [line for line in lines if line and not line.startswith(("#", "-"))]
    names = [line.split("==")[0] for line in lines]
    return [
        line if names.count(name) > 1 else line.split(";")[0].strip()
        for name, line in zip(names, lines)
    ]


def with_block(text: str, block: str, pins: list[str]) -> str:
    """Returns this pyproject.toml with the lines after `# pins: <block>` replaced."""
    key = BLOCKS[block][0]
    items = "".join(f'  "{pin}",\n' for pin in pins)
    value = f"{key} = [\n{items}]\n" if pins else key + " = []\n"
    pattern = rf"(# pins: {re.escape(block)}\n).*?(?=# pins:)"
    return re.sub(pattern, lambda match: match.group(1) + value, text, count=1, flags=re.DOTALL)


def pinned(text: str) -> set[str]:
    """Names of the packages that this pyproject.toml pins."""
    inside = re.search(r"# pins: constraints\n(.*?)# pins: build", text, re.DOTALL)
    return (
        set(re.findall(r'^  "([a-z0-9-]+)==', inside.group(1), re.MULTILINE)) if inside else set()
    )


if __name__ == "__main__":
    sys.exit(main())
