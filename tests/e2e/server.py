"""The real `vllm serve`, as a user starts it: from a shell that exports none of our variables."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from demo.server import HOST, free_port
from tests.e2e.engine import MAX_NUM_BATCHED_TOKENS, MAX_NUM_SEQS

READY_S = 120.0
STOP_S = 30.0

# What a plain shell does not have: our variables, and those the plugin exports.
_OURS = ("TORCHTPU_", "TORCH_TPU_", "TPU_", "TORCHINDUCTOR_", "TF_CPP_", "VLLM_", "TORCH_DEVICE_")
# Two engines of one machine share its memory, and a tiny model needs little.
_MEMORY_SHARE = "0.1"
_ORPHAN_GRACE_S = 10.0


def plain_environment(**extra: str) -> dict[str, str]:
    """Returns this process's environment without any variable of torch_tpu, vLLM or the plugin."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    return plain | {"HF_HUB_OFFLINE": "1"} | extra


@dataclass(frozen=True)
class Ending:
    """How a server ended after a signal."""

    exit_code: int | None
    """None if it had not ended in time, and was killed."""
    seconds: float
    orphans: list[str]
    log: str


class VllmServer:
    """A `vllm serve` process in a session of its own, which never outlives its block."""

    def __init__(self, model: Path, log: Path, *options: str, **environment: str) -> None:
        self.log = log
        self.model = str(model)
        port = free_port()
        self.url = f"http://{HOST}:{port}"
        self._argv = [
            *(str(Path(sys.executable).with_name("vllm")), "serve", self.model),
            *("--host", HOST, "--port", str(port), "--dtype", "float32", "--max-model-len", "256"),
            *("--max-num-seqs", str(MAX_NUM_SEQS)),
            *("--max-num-batched-tokens", str(MAX_NUM_BATCHED_TOKENS)),
            *("--gpu-memory-utilization", _MEMORY_SHARE, *options),
        ]
        self._environment = plain_environment(**environment)

    def __enter__(self) -> "VllmServer":
        with self.log.open("wb") as file:
            self._process = subprocess.Popen(
                self._argv,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return self

    def __exit__(self, *_: object) -> None:
        for process in [*self._family(), psutil.Process(self._process.pid)] if self._runs() else []:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait()

    def text(self) -> str:
        """Returns all that the server has written so far."""
        return self.log.read_text(errors="replace")

    def wait_until_ready(self) -> None:
        """Waits for `/health`."""
        with httpx.Client(trust_env=False, timeout=5) as client:

            def healthy() -> bool:
                with contextlib.suppress(httpx.TransportError):
                    return client.get(f"{self.url}/health").is_success
                return False

            self._wait(healthy)

    def wait_for(self, words: str) -> None:
        """Waits until the log has these words."""
        self._wait(lambda: words in self.text())

    def end_by(self, number: signal.Signals, *, whole_group: bool = False) -> Ending:
        """Sends a signal, to the server or (as a terminal does) to its process group, and waits."""
        family = self._family()
        start = time.monotonic()
        if whole_group:
            os.killpg(self._process.pid, number)
        else:
            self._process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_S)
        seconds, code = time.monotonic() - start, self._process.poll()
        if code is None:
            self._process.kill()
            self._process.wait()
        return Ending(code, seconds, _kill_survivors(family), self.text())

    def _family(self) -> list[psutil.Process]:
        return psutil.Process(self._process.pid).children(recursive=True)

    def _runs(self) -> bool:
        return self._process.poll() is None

    def _wait(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + READY_S
        while not condition():
            assert self._runs(), f"the server ended too early:\n{self.text()[-4000:]}"
            assert time.monotonic() < deadline, f"not in {READY_S} s:\n{self.text()[-4000:]}"
            time.sleep(0.1)


@contextlib.contextmanager
def streaming(server: VllmServer, **request: object) -> Iterator[Iterator[str]]:
    """Yields the lines of a streamed completion while it runs."""
    body = {"model": server.model, "stream": True, **request}
    with (
        httpx.Client(trust_env=False, timeout=STOP_S) as client,
        client.stream("POST", f"{server.url}/v1/completions", json=body) as response,
    ):
        yield (line for line in response.iter_lines() if line)


def _kill_survivors(family: list[psutil.Process]) -> list[str]:
    """Returns the processes that outlive their server by more than a moment, and kills them."""
    _, alive = psutil.wait_procs(family, timeout=_ORPHAN_GRACE_S)
    found = []
    for process in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            # An ended process that nobody has collected yet is no orphan.
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(f"{process.pid} {process.name()}")
                process.kill()
    return found
