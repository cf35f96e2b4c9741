"""Makes .venv on a machine that has nothing but some Python; standard library only, from Python 3.8 on."""

import sys

# Before anything that an older Python can't even parse.
if sys.version_info < (3, 8):  # noqa: UP036
    sys.exit(
        "set-up: this is Python {}.{}; run it with 3.8 or newer: make PYTHON=...".format(
            *sys.version_info[:2]
        )
    )
