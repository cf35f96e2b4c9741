"""Runs a server process: started on a free port, watched until healthy, stopped to the last child."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx
import psutil

from demo.errors import DemoError
from demo.server_log import ServerLog

HOST = "127.0.0.1"
STOP_TIMEOUT_S = 60.0

_POLL_S = 0.25
_SHOWN_LOG_LINES = 25
_ORPHAN_GRACE_S = 5.0
_KILL_GRACE_S = 2.0


class ServerTimeoutError(DemoError):
    """The server was not healthy in time."""


@dataclass(frozen=True)
class Ending:
    """How a server ended after SIGTERM."""

    exit_code: int
    seconds: float
    orphans: tuple[str, ...]
    """Processes of the server that outlived it (and were killed), as ``pid name``."""

    def problems(self) -> list[str]:
        """Returns what was wrong with it, one sentence each."""
        found = []
        if self.exit_code != 0:
            found.append(
                f"server: it ended with exit code {self.exit_code} after SIGTERM; read its log"
            )
        if self.orphans:
            found.append(
                f"server: it left processes behind: {', '.join(self.orphans)}; they were killed"
            )
        return found


class Server:
    """A server process in a session of its own, so that a terminal's Ctrl-C is ours to handle.

    As a context manager it never outlives its block.
    """

    def __init__(self, argv: Sequence[str], port: int, log: ServerLog) -> None:
        """Prepares ``argv`` to run; it must serve ``/health`` on ``port``."""
        self.argv = list(argv)
        self.url = f"http://{HOST}:{port}"
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._ending: Ending | None = None

    @property
    def pid(self) -> int:
        """The process, which is also the id of its session."""
        assert self._process is not None, "the server is started by its with block"
        return self._process.pid

    def __enter__(self) -> Self:
        """Starts the process; its output goes to the log file."""
        self.log.path.parent.mkdir(parents=True, exist_ok=True)
        with self.log.path.open("wb") as file:
            self._process = subprocess.Popen(
                self.argv,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stops the process if that has not been done."""
        self.stop()

    def wait_until_healthy(
        self, timeout_s: float, on_message: Callable[[str], None] | None = None
    ) -> float:
        """Waits for ``/health``; returns the seconds it took.

        Args:
            timeout_s: How long to wait.
            on_message: Gets the server's latest log message now and then.

        Raises:
            ServerTimeoutError: It took longer.
            DemoError: The server ended; the sentence carries the end of its log.
        """
        assert self._process is not None, "the server is started by its with block"
        start = time.monotonic()
        with httpx.Client(trust_env=False, timeout=5.0) as client:
            while time.monotonic() - start < timeout_s:
                if (code := self._process.poll()) is not None:
                    raise DemoError(
                        f"server: it ended with exit code {code} before it was ready; read the "
                        f"end of its log, {self.log.path}:\n{self._log_end()}"
                    )
                with contextlib.suppress(httpx.TransportError):
                    if client.get(f"{self.url}/health").is_success:
                        return time.monotonic() - start
                if on_message and (message := self.log.last_message()):
                    on_message(message)
                time.sleep(_POLL_S)
        raise ServerTimeoutError(
            f"server: it was not ready after {timeout_s:.0f} s; read the end of its log, "
            f"{self.log.path}, or allow more with --timeout:\n{self._log_end()}"
        )

    def stop(self) -> Ending:
        """Ends the server as a user's SIGTERM does, then kills whatever is left of it."""
        assert self._process is not None, "the server is started by its with block"
        if self._ending is not None:
            return self._ending
        process = self._process
        family = _descendants(process.pid)
        start = time.monotonic()
        try:
            process.send_signal(signal.SIGTERM)
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            pass  # killed below; its exit code says so
        finally:
            # Also after a second Ctrl-C: nothing of the server stays.
            seconds = time.monotonic() - start
            if process.poll() is None:
                process.kill()
                process.wait()
            orphans = _kill_survivors(family, session=process.pid)
        self._ending = Ending(process.returncode, seconds, orphans)
        return self._ending

    def _log_end(self) -> str:
        return "\n".join(f"  | {line}" for line in self.log.tail(_SHOWN_LOG_LINES))


def free_port() -> int:
    """Returns a TCP port of the loopback interface that nothing listens on at the moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def new_log(directory: Path, name: str) -> ServerLog:
    """Returns a log file in ``directory`` that no other run has."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    return ServerLog(directory / f"{name}-{stamp}-{os.getpid()}.log")


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _kill_survivors(family: Sequence[psutil.Process], session: int) -> tuple[str, ...]:
    """Kills what is left of a server after a grace period; returns it as ``pid name``.

    A child that lost its parent is no descendant any more, but stays in the session.
    """
    members = {process.pid: process for process in [*family, *_session_members(session)]}
    _, alive = psutil.wait_procs(list(members.values()), timeout=_ORPHAN_GRACE_S)
    survivors = []
    for process in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.status() == psutil.STATUS_ZOMBIE:
                continue  # ended; a container's init may never collect it
            survivors.append(f"{process.pid} {process.name()}")
            process.kill()
    psutil.wait_procs(alive, timeout=_KILL_GRACE_S)
    return tuple(survivors)


def _session_members(session: int) -> list[psutil.Process]:
    members = []
    for process in psutil.process_iter():
        with contextlib.suppress(OSError, psutil.Error):
            if os.getsid(process.pid) == session and process.pid != session:
                members.append(process)
    return members
