"""Every package that uv resolved has a pin."""

import tomllib
from pathlib import Path

from ci.setup import pins


def problems(root: Path, files: list[Path]) -> list[str]:
    """Compares uv.lock, which set-up wrote and git ignores, with the pins in pyproject.toml."""
    lock = root / "uv.lock"
    if not lock.is_file():
        return []
    packages = tomllib.loads(lock.read_text(encoding="utf-8"))["package"]
    resolved = {package["name"] for package in packages if "registry" in package["source"]}
    missing = resolved - pins.pinned((root / "pyproject.toml").read_text(encoding="utf-8"))
    return [
        f"pyproject.toml: {name} is installed but not pinned; run `make pins`"
        for name in sorted(missing)
    ]
