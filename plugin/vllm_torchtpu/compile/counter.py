"""Counts compilations in this process, from torch_tpu's own statistics."""


def compilation_count() -> int:
    """How often XLA has compiled so far; an executable read from the persistent cache is none."""
    from torch_tpu._internal.device import _device_ops_backend  # pyright: ignore[reportAttributeAccessIssue]

    return _device_ops_backend._get_cache_stats().num_compilations


def executable_count() -> int:
    """How many executables this process has asked for that it did not hold yet.

    They were compiled or read from the persistent cache; either way a new shape has come. Cheap
    enough for every step.
    """
    from torch_tpu._internal.device import _device_ops_backend  # pyright: ignore[reportAttributeAccessIssue]

    return _device_ops_backend._get_cache_misses()
