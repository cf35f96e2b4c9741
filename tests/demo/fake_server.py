"""A stand-in for `vllm serve`: python fake_server.py PORT BEHAVIOUR.

healthy: serves /health and ends with 0 on SIGTERM; loud: exits with 3 at once after a log line;
silent: never listens; stubborn: ignores SIGTERM; wrong-exit: ends with 7; orphan: leaves a child.
"""

import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer


class Health(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()

    def log_message(self, *args):
        pass


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    port, behaviour = int(sys.argv[1]), sys.argv[2]
    say(f"(APIServer pid={os.getpid()}) INFO 11-30 20:00:00 [api.py:1] Starting as {behaviour}")
    if behaviour == "loud":
        say("memory: the device has 1 GiB; use a smaller model")
        sys.exit(3)
    if behaviour == "silent":
        time.sleep(600)
    if behaviour == "orphan":
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    exit_code = 7 if behaviour == "wrong-exit" else 0
    handler = signal.SIG_IGN if behaviour == "stubborn" else lambda *_: os._exit(exit_code)
    signal.signal(signal.SIGTERM, handler)
    HTTPServer(("127.0.0.1", port), Health).serve_forever()


if __name__ == "__main__":
    main()
