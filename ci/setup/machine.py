"""What this machine must have before anything is downloaded."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
from pathlib import Path

REQUIRED_GB = 10
"""The environment and what uv's cache holds besides take 9.1 GB; the rest is room to build in."""


def problems(root: Path) -> list[str]:
    """Returns every reason why this machine cannot hold the environment, as sentences."""
    found = [
        platform_problem(platform.system(), platform.machine()),
        compiler_problem(),
        disk_problem(root),
    ]
    return [sentence for sentence in found if sentence]


def platform_problem(system: str, machine: str) -> str | None:
    """Says why this operating system or processor is unsupported, if it is."""
    if (system, machine) == ("Linux", "x86_64"):
        return None
    return f"this is {system} on {machine}, torch-tpu is published for Linux on x86_64 only; use such a machine"


def compiler_problem() -> str | None:
    """Says that there is no C compiler, if there is none: the virtual TPU's shim is built with it."""
    chosen = os.environ.get("CC")
    names = [shlex.split(chosen)[0]] if chosen else ["cc", "gcc", "clang"]
    if any(shutil.which(name) for name in names):
        return None
    return "no C compiler found ({}); install one (on Debian: apt-get install gcc libc6-dev) or name it in CC".format(
        ", ".join(names)
    )


def disk_problem(root: Path, disk_usage=shutil.disk_usage) -> str | None:
    """Says that the disk is too full for the environment, if it is."""
    free_gb = disk_usage(str(root)).free / 1e9
    if free_gb >= REQUIRED_GB:
        return None
    return f"{free_gb:.1f} GB are free in {root}, {REQUIRED_GB} are needed; free some space or clone to another disk"
