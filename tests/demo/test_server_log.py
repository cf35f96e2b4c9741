"""What the demo shows of a server comes from its log."""

import pytest

from demo.server_log import ServerLog, WarmUp

LOG = """
(APIServer pid=10) INFO 11-30 20:41:20 [utils.py:233] non-default args: {'port': 1}
(EngineCore pid=20) \x1b[32mINFO\x1b[0m 11-30 20:41:30 [worker.py:51] Memory of the virtual TPU: 5.89 GiB, of which
Compiling:  50%|#####     | 1/2\rCompiling: 100%|##########| 2/2
(EngineCore pid=20) INFO 11-30 20:43:00 [warmup.py:58] torchtpu: warm-up finished: graphs=6 compiled=9 seconds=64.9
(APIServer pid=10) INFO 11-30 20:43:01 [logo.py:1]   ▄▄ ▄█
"""


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "server.log"
    path.write_text(LOG)
    return ServerLog(path)


def test_the_last_message_is_the_last_one_with_words(log):
    assert log.last_message() == "torchtpu: warm-up finished: graphs=6 compiled=9 seconds=64.9"


def test_a_progress_bar_is_shown_as_it_ended(log):
    assert log.tail(3)[0] == "Compiling: 100%|##########| 2/2"


def test_device_and_warm_up_are_the_workers_own(log):
    assert log.device() == "virtual TPU"
    assert log.warm_up() == WarmUp(graphs=6, seconds=64.9)


def test_an_empty_log_knows_nothing(tmp_path):
    path = tmp_path / "server.log"
    path.touch()
    log = ServerLog(path)
    assert (log.last_message(), log.device(), log.warm_up(), log.tail(5)) == (None, None, None, [])
