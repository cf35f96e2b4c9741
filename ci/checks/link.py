"""What the documentation points to exists: relative links and `make` commands."""

import re
from pathlib import Path

LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")
COMMAND = re.compile(r"`make ([a-z][a-z0-9-]*)")
TARGET = re.compile(r"^([a-z][a-z0-9-]*):", re.MULTILINE)


def problems(root: Path, files: list[Path]) -> list[str]:
    """Reports links to files that are not there and commands that the Makefile does not have."""
    makefile = root / "Makefile"
    commands = (
        set(TARGET.findall(makefile.read_text(encoding="utf-8"))) if makefile.is_file() else set()
    )
    found = []
    for path in (path for path in files if path.suffix == ".md"):
        for number, line in enumerate((root / path).read_text(encoding="utf-8").splitlines(), 1):
            for link in LINK.findall(line):
                if not (root / path.parent / link).exists():
                    found.append(
                        f"{path}:{number}: links to {link}, which is not there; mend the link"
                    )
            for command in COMMAND.findall(line):
                if command not in commands:
                    found.append(
                        f"{path}:{number}: names `make {command}`, which the Makefile lacks; mend the text"
                    )
    return found
