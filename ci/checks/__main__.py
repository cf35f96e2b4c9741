"""Runs every check and shows all problems at once: `make check`.

With --repository only the repository's own, which take a second; with --fix it is `make fix`.
"""

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from ci.checks import (
    dependency,
    environ,
    environment_page,
    host,
    link,
    patch,
    pin,
    size,
    source,
    tool,
)

ROOT = Path(__file__).resolve().parents[2]
REPOSITORY = {
    "sizes of files and functions": size,
    "imports of each distribution": dependency,
    "patches of upstream": patch,
    "environment variables": environ,
    "environment page is current": environment_page,
    "no hosts, no machine paths": host,
    "pins are complete": pin,
    "links and commands in the documentation": link,
}


def main(arguments: list[str]) -> int:
    """Returns the exit code: 1 if there is any problem."""
    if arguments == ["--fix"]:
        return fix()
    if arguments not in ([], ["--repository"]):
        found = " ".join(arguments)
        print(f"checks: found {found}; give --repository, --fix or nothing", file=sys.stderr)
        return 2
    files = source.files(ROOT)
    checks: dict[str, Callable[[], list[str]]] = {}
    for one in () if arguments else tool.CHECKS:
        checks[one.name] = partial(one.problems, ROOT)
    for name, module in REPOSITORY.items():
        checks[name] = partial(module.problems, ROOT, files)
    return run(checks)


def run(checks: dict[str, Callable[[], list[str]]]) -> int:
    """Runs the checks, prints what each found and returns the exit code."""
    started = time.monotonic()
    failed = 0
    # Two at once: pyright takes as long as all others together.
    with ThreadPoolExecutor(2) as pool:
        running = [(name, pool.submit(check)) for name, check in checks.items()]
        for name, future in running:
            found = future.result()
            failed += bool(found)
            print(f"{'FAIL' if found else 'ok':4}  {name}", flush=True)
            for problem in found:
                print(f"      {problem}", flush=True)
    verdict = f"{failed} of {len(checks)} failed" if failed else "all is well"
    print(f"checks: {verdict} ({time.monotonic() - started:.0f} s)")
    return 1 if failed else 0


def fix() -> int:
    """Repairs what a program can repair; what is left, `make check` shows."""
    failed = 0
    for one in tool.FIXES:
        # ruff exits with 1 for what it can't mend: that is for `make check` to say.
        if one.problems(ROOT) and one.command[0] != "ruff":
            print(
                f"checks: {one.name} could not be written; run `make check` to see why",
                file=sys.stderr,
            )
            failed = 1
    environment_page.fix(ROOT)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
