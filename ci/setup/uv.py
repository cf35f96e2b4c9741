"""Gets uv and runs it with progress that a log can hold."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
import time
from pathlib import Path

from ci.setup.failure import SetupFailureError

VERSION = "0.13.9"
MINIMUM = (0, 13)
HEARTBEAT_S = 15
# Of uv's lines, those that tell a person how far it is.
PROGRESS = re.compile(
    r"^\s*(Resolved|Downloading|Building|Built|Prepared|Uninstalled|Installed|Bytecode compiled)\b"
)
DISK_FULL = "the disk became full; free some space and run the command again"
NO_CONNECTION = re.compile(
    "error sending request|dns error|Request failed after|Connection refused|NewConnectionError|timed out"
    "|from versions: none|Could not connect",
    re.IGNORECASE,
)
UNREACHABLE = (
    "the package registry could not be reached; check the network, the proxy and the index settings "
    "(UV_DEFAULT_INDEX, PIP_INDEX_URL) and run the command again"
)
NO_PIP = (
    "uv is missing and this Python has neither venv nor pip to get it with; install one of the three "
    "(on Debian: apt-get install python3-venv) and run the command again"
)


def find_or_install(folder: Path, python: str, say) -> str:
    """Returns a usable uv: PATH's, or the pinned one installed into `folder`.

    Raises:
        SetupFailureError: if it can't be had.
    """
    ours = folder / "bin" / "uv"
    for candidate in (shutil.which("uv"), str(ours)):
        if candidate and (version(candidate) or (0,)) >= MINIMUM:
            return candidate
    say(f"getting uv {VERSION} into {folder.name}")
    if folder.exists():
        shutil.rmtree(str(folder))
    pip = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--retries",
        "2",
        "uv==" + VERSION,
    ]
    made = _run([python, "-m", "venv", str(folder)])
    if made.returncode == 0:
        got = _run([str(folder / "bin" / "python"), *pip])
    else:
        # Debian's python3 without python3-venv may still have pip.
        shutil.rmtree(str(folder), ignore_errors=True)
        if _run([python, "-m", "pip", "--version"]).returncode != 0:
            raise SetupFailureError(DISK_FULL if is_disk_full(made.stderr) else NO_PIP)
        got = _run([python, *pip, "--target", str(folder)])
    if got.returncode != 0 or version(str(ours)) is None:
        raise SetupFailureError(explain(got.stderr, "pip could not install uv"))
    return str(ours)


def version(uv: str) -> tuple[int, ...] | None:
    """The version of this uv, or None if it does not run."""
    try:
        answer = _run([uv, "--version"])
    except OSError:
        return None
    numbers = re.match(r"uv (\d+)\.(\d+)\.(\d+)", answer.stdout)
    return (
        tuple(int(number) for number in numbers.groups())
        if numbers and answer.returncode == 0
        else None
    )


def python(uv: str, say) -> str | None:
    """Returns a supported Python that uv manages or can download, or None."""
    find = [uv, "python", "find", "--no-project", ">=3.12,<3.14"]
    found = _run(find)
    if found.returncode != 0 and os.environ.get("UV_PYTHON_DOWNLOADS", "automatic") == "automatic":
        say("downloading Python 3.12 with uv")
        if _run([uv, "python", "install", "3.12"]).returncode == 0:
            found = _run(find)
    return found.stdout.strip() or None if found.returncode == 0 else None


def environment_variables(venv: Path) -> dict[str, str]:
    """The user's environment, with this project's venv as the one that uv works on.

    uv does not read pip's settings: who names an index or a certificate for pip means it for uv too.
    """
    variables = dict(os.environ, UV_PROJECT_ENVIRONMENT=str(venv), UV_NO_PROGRESS="1")
    for name in ("VIRTUAL_ENV", "UV_FROZEN", "UV_LOCKED", "UV_NO_SYNC"):
        variables.pop(name, None)
    for pip, uv in (("PIP_INDEX_URL", "UV_DEFAULT_INDEX"), ("PIP_CERT", "SSL_CERT_FILE")):
        if pip in variables and "UV_INDEX_URL" not in variables:
            variables.setdefault(uv, variables[pip])
    return variables


def run(command: list[str], cwd: Path, venv: Path, log: Path, lock_file) -> None:
    """Runs a long uv command: its progress lines, a sign of life in between, and everything into `log`.

    Raises:
        SetupFailureError: with one sentence on what went wrong.
    """
    with subprocess.Popen(
        command,
        cwd=str(cwd),
        env=environment_variables(venv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        # If this process is killed, uv holds the lock until it ends too.
        pass_fds=(lock_file.fileno(),),
    ) as process, _Heartbeat(venv.parent) as heartbeat:
        try:
            lines = _follow(process, log, heartbeat)
        except BaseException:
            process.terminate()
            raise
    if process.returncode < 0:
        sentence = "uv was ended by signal {} (out of memory?); run the command again to go on"
        raise SetupFailureError(sentence.format(-process.returncode))
    if process.returncode != 0:
        raise SetupFailureError(explain("".join(lines), "uv failed, see " + str(log)))


def _follow(process, log: Path, heartbeat: _Heartbeat) -> list[str]:
    lines = []
    with open(log, "w", encoding="utf-8") as out:
        for raw in process.stderr:
            line = raw.decode(errors="replace")
            lines.append(line)
            out.write(line)
            if PROGRESS.match(line):
                heartbeat.beat()
                print("      " + line.strip(), flush=True)
    return lines


class _Heartbeat:
    """Prints the time that has passed, and what the disk has taken, when nothing else was printed for a while."""

    def __init__(self, folder: Path):
        self._folder = str(folder)
        self._started = self._last = time.monotonic()
        self._used_bytes = shutil.disk_usage(self._folder).used
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> _Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, *exception) -> None:
        self._ended.set()
        self._thread.join()

    def beat(self) -> None:
        """Notes that something was printed."""
        self._last = time.monotonic()

    def _watch(self) -> None:
        while not self._ended.wait(1):
            if time.monotonic() - self._last < HEARTBEAT_S:
                continue
            self.beat()
            taken_gb = (shutil.disk_usage(self._folder).used - self._used_bytes) / 1e9
            size = f", {taken_gb:.1f} GB written" if taken_gb > 0.05 else ""
            print(f"      ... {time.monotonic() - self._started:.0f} s{size}", flush=True)


def explain(output: str, otherwise: str) -> str:
    """Turns a failed uv's or pip's output into one sentence."""
    if is_disk_full(output):
        return DISK_FULL
    if NO_CONNECTION.search(output):
        return UNREACHABLE
    said = [line.strip() for line in output.splitlines() if line.strip()]
    first = next(
        (line for line in said if line.lower().startswith(("error", "\u00d7"))),
        said[-1] if said else "no output",
    )
    return "{} ({}); mend that and run the command again".format(otherwise, first.rstrip(".;"))


def is_disk_full(output: str) -> bool:
    """Whether this output complains of a full disk."""
    return bool(re.search(r"No space left on device|os error 28|Disk quota exceeded", output))


def _run(command: list[str]):
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env={name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"},
    )
