"""No file names a package registry's host or a path of somebody's machine."""

import re
from pathlib import Path

# Written so that this file doesn't match itself.
PATTERNS = {
    "a registry's host": re.compile(
        r"p[y]pi\.o|p[y]thonhosted|registry\.n[p]mjs|deb\.d[e]bian|archive\.u[b]untu|download\.p[y]torch"
        r"|https?://[^\s\"')]*/s[i]mple\b"
    ),
    "a machine's path": re.compile(
        r"/r[o]ot/|/t[m]p/[a-z]|/w[o]rk/|/h[o]me/(?!someone\b|user\b)[a-z]|/U[s]ers/[a-z]"
    ),
}


def problems(root: Path, files: list[Path]) -> list[str]:
    """Reports each line that names one."""
    found = []
    for path in files:
        try:
            lines = (root / path).read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(lines, 1):
            for what, pattern in PATTERNS.items():
                match = pattern.search(line)
                if match:
                    found.append(
                        f"{path}:{number}: names {what} ({match.group()}); leave it to the machine's settings"
                    )
    return found
