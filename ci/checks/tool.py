"""The checks that are other programs, and what repairs what they find."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Tool:
    """A command that exits with 0 when all is well."""

    name: str
    command: tuple[str, ...]
    """The first word is a program of this environment."""

    def problems(self, root: Path) -> list[str]:
        """Runs it and returns what it printed, if it failed."""
        program, *arguments = self.command
        done = subprocess.run(
            [str(BIN / program), *arguments],
            cwd=root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            return []
        return done.stdout.rstrip().splitlines() or [
            f"{program} exited with {done.returncode} and said nothing"
        ]


CHECKS = (
    Tool("types (pyright)", ("pyright",)),
    Tool("lint (ruff)", ("ruff", "check", "--quiet", "--output-format=concise")),
    Tool("format (ruff)", ("ruff", "format", "--check", "--quiet", "--output-format=concise")),
    Tool("layers (import-linter)", ("lint-imports", "--no-logo")),
    Tool("matrix data", ("tpu-matrix", "lint")),
    Tool("matrix tables are current", ("tpu-matrix", "render", "--check")),
    Tool("matrix schema is current", ("tpu-matrix", "schema", "--check")),
)
FIXES = (
    Tool("lint (ruff)", ("ruff", "check", "--quiet", "--fix")),
    Tool("format (ruff)", ("ruff", "format", "--quiet")),
    Tool("matrix tables", ("tpu-matrix", "render")),
    Tool("matrix schema", ("tpu-matrix", "schema")),
)
