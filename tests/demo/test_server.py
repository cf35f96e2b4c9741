"""A server is watched while it starts, and nothing of it stays when it is stopped."""

import os
import sys
from pathlib import Path

import psutil
import pytest

from demo import server as server_module
from demo.errors import DemoError
from demo.server import Server, ServerTimeoutError, free_port
from demo.server_log import ServerLog


def fake(behaviour: str, tmp_path: Path) -> Server:
    port = free_port()
    argv = [sys.executable, str(Path(__file__).with_name("fake_server.py")), str(port), behaviour]
    return Server(argv, port, ServerLog(tmp_path / "logs" / "server.log"))


def test_a_healthy_server_ends_with_zero_and_leaves_nothing(tmp_path):
    with fake("healthy", tmp_path) as server:
        assert server.wait_until_healthy(30) > 0
        ending = server.stop()
    assert (ending.exit_code, ending.orphans, ending.problems()) == (0, (), [])


def test_messages_are_passed_on_while_it_starts(tmp_path):
    messages = []
    with fake("silent", tmp_path) as server, pytest.raises(ServerTimeoutError):
        server.wait_until_healthy(1.5, messages.append)
    assert messages[-1] == "Starting as silent"


def test_a_server_that_ends_early_shows_the_end_of_its_log(tmp_path):
    with fake("loud", tmp_path) as server, pytest.raises(DemoError) as failure:
        server.wait_until_healthy(30)
    text = str(failure.value)
    assert text.startswith("server: it ended with exit code 3 before it was ready")
    assert text.endswith("| memory: the device has 1 GiB; use a smaller model")
    assert str(server.log.path) in text


def test_a_timeout_names_the_option(tmp_path):
    with (
        fake("silent", tmp_path) as server,
        pytest.raises(
            ServerTimeoutError, match=r"not ready after 1 s; .* allow more with --timeout"
        ),
    ):
        server.wait_until_healthy(1)


def test_another_exit_code_is_a_problem(tmp_path):
    with fake("wrong-exit", tmp_path) as server:
        server.wait_until_healthy(30)
        ending = server.stop()
    assert ending.problems() == ["server: it ended with exit code 7 after SIGTERM; read its log"]


def test_an_orphan_is_reported_and_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(server_module, "_ORPHAN_GRACE_S", 0.5)
    with fake("orphan", tmp_path) as server:
        server.wait_until_healthy(30)
        ending = server.stop()
    [orphan] = ending.orphans
    assert not psutil.pid_exists(int(orphan.split()[0])) or is_zombie(int(orphan.split()[0]))
    assert ending.problems() == [f"server: it left processes behind: {orphan}; they were killed"]


def is_zombie(pid: int) -> bool:
    return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_server_that_ignores_sigterm_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(server_module, "STOP_TIMEOUT_S", 0.5)
    with fake("stubborn", tmp_path) as server:
        server.wait_until_healthy(30)
        ending = server.stop()
    assert ending.exit_code == -9
    assert "-9" in ending.problems()[0]


def test_an_interrupted_block_stops_the_server(tmp_path):
    server = fake("healthy", tmp_path)
    with pytest.raises(KeyboardInterrupt), server:
        raise KeyboardInterrupt
    assert not psutil.pid_exists(server.pid)


def test_the_server_has_a_session_of_its_own(tmp_path):
    with fake("healthy", tmp_path) as server:
        assert os.getsid(server.pid) != os.getsid(0)
