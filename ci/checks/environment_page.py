"""docs/environment.md is what the plugin's envs.py prints."""

import subprocess
import sys
from pathlib import Path

PAGE = Path("docs/environment.md")


def problems(root: Path, files: list[Path]) -> list[str]:
    """Reports a page that differs."""
    path = root / PAGE
    if path.is_file() and path.read_text(encoding="utf-8") == rendered(root):
        return []
    return [f"{PAGE}: is not what envs.py declares; run `make fix`"]


def fix(root: Path) -> None:
    """Writes the page."""
    (root / PAGE).write_text(rendered(root), encoding="utf-8")


def rendered(root: Path) -> str:
    """The page as the declarations have it, from a fresh process so that no import is stale."""
    command = [sys.executable, "-m", "vllm_torchtpu.envs"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
