"""A contender without a model: it prints noise, then answers; dtype `broken` ends it early."""

import os
import sys

from benchmarks.contender import serve
from benchmarks.workload import Repetition


def prepare(workload):
    os.write(1, b"noise of a library\n")
    if workload.dtype == "broken":
        sys.exit(5)
    return lambda: Repetition(seconds=workload.new_tokens / 10, host_step_ms=1.5)


if __name__ == "__main__":
    serve(prepare, sys.argv[1:])
