"""Errors that the demo shows as one sentence, without a traceback."""


class DemoError(Exception):
    """A failure with a remedy: ``<where>: <what was found>; <what to do>``."""
