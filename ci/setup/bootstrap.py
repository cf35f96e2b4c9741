"""Makes .venv ready: `python3 -m ci.setup.bootstrap`, which make runs before everything else.

Finds Python 3.12 or 3.13 and uv, installs the pinned packages and builds the virtual TPU's shim. What is ready
already is left alone; what an interruption left behind is repaired.
"""

from __future__ import annotations

import fcntl
import signal
import subprocess
import sys
import time
from pathlib import Path

from ci.setup import environment, interpreter, machine, uv
from ci.setup.failure import SetupFailureError

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
UV_FOLDER = ROOT / ".uv"
LOG = ROOT / ".setup.log"
LOCK = ROOT / ".setup.lock"
STEPS = 5


def main() -> int:
    """Runs set-up and returns the exit code, having said in a sentence what went wrong."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with open(LOCK, "w", encoding="utf-8") as lock_file:
            _lock(lock_file)
            if not environment.is_current(ROOT, VENV):
                set_up(lock_file)
        return 0
    except SetupFailureError as failure:
        for sentence in failure.sentences:
            print("set-up: " + sentence, file=sys.stderr)
    except OSError as error:
        full = uv.is_disk_full(str(error))
        sentence = uv.DISK_FULL if full else f"{error}; mend that and run the command again"
        print("set-up: " + sentence, file=sys.stderr)
    except KeyboardInterrupt:
        print("set-up: interrupted; run the same command again to go on", file=sys.stderr)
        return 130
    return 1


def set_up(lock_file) -> None:
    """Does all steps, saying each.

    Raises:
        SetupFailureError: if one can't be done.
    """
    started = time.monotonic()
    _say(1, "checking this machine")
    python = interpreter.find()
    problems = machine.problems(ROOT) if not VENV.exists() else [machine.compiler_problem()]
    _raise_all(problems)

    _say(2, "finding uv")
    command = uv.find_or_install(UV_FOLDER, python or sys.executable, lambda text: _say(2, text))

    _say(3, "finding Python 3.12 or 3.13")
    python = python or uv.python(command, lambda text: _say(3, text))
    if python is None:
        raise SetupFailureError(interpreter.NOT_FOUND)
    print("      " + python, flush=True)

    _say(4, "installing the pinned packages into .venv (9 GB; minutes when nothing is cached)")
    environment.remove_stamp(VENV)
    damage = environment.damage(VENV) if VENV.exists() or VENV.is_symlink() else None
    if damage:
        print("      rebuilding .venv: " + damage, flush=True)
        environment.remove(VENV)
    lock = ROOT / "uv.lock"
    if lock.exists():
        lock.unlink()  # Only the pins decide, not what some earlier state resolved to.
    sync = [command, "sync", "--python", python, "--compile-bytecode", "--no-python-downloads"]
    uv.run(sync, ROOT, VENV, LOG, lock_file)

    _say(5, "building the virtual TPU's shim")
    _build_shim()
    environment.write_stamp(ROOT, VENV)
    print(f"set-up: ready in {time.monotonic() - started:.0f} s", flush=True)


def _build_shim() -> None:
    build = subprocess.run(
        [str(VENV / "bin" / "python"), "-m", "vllm_torchtpu.virtual.build"],
        cwd=str(ROOT),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if build.returncode != 0:
        said = build.stderr.strip().splitlines() or ["it said nothing"]
        raise SetupFailureError("the virtual TPU's shim was not built: " + said[-1])


def _lock(lock_file) -> None:
    try:
        fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("set-up: waiting for another set-up of this clone to end", flush=True)
        fcntl.flock(lock_file, fcntl.LOCK_EX)


def _raise_all(problems) -> None:
    sentences = [sentence for sentence in problems if sentence]
    if sentences:
        raise SetupFailureError(*sentences)


def _say(step: int, text: str) -> None:
    print(f"[{step}/{STEPS}] {text}", flush=True)


def _interrupt(number, frame) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
