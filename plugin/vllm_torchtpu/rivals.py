"""Finds out whether another vLLM platform has a device here, so that ours is never in its way."""

import contextlib
from importlib.metadata import entry_points

from vllm_torchtpu import envs

GROUP = "vllm.platform_plugins"
OUR_NAME = "torchtpu"

_asking = False


def asking() -> bool:
    """Whether `active_plugin` is at work, which calls other plugins' code."""
    return _asking


def active_plugin() -> str | None:
    """The name of another out-of-tree platform plugin that is active, as vLLM would find it."""
    global _asking
    allowed = envs.vllm_plugins()
    _asking = True
    try:
        for point in entry_points(group=GROUP):
            if point.name == OUR_NAME or (allowed is not None and point.name not in allowed):
                continue
            # vLLM logs a failing plugin and goes on; so it is no rival.
            with contextlib.suppress(Exception):
                if point.load()() is not None:
                    return point.name
    finally:
        _asking = False
    return None


def builtin_platform() -> str | None:
    """The name of vLLM's built-in platform that is active here.

    Its "tpu" does not count: it is active wherever libtpu can be imported.
    """
    from vllm.platforms import builtin_platform_plugins

    for name, detect in builtin_platform_plugins.items():
        if name != "tpu":
            with contextlib.suppress(Exception):
                if detect() is not None:
                    return name
    return None
