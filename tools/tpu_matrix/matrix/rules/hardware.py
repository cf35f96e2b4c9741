"""Rules about chips: counts that have to agree, and types a chip lacks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from tpu_matrix.matrix.model import KvCacheDtype
from tpu_matrix.matrix.rules.registry import Context, Problem, rule
from tpu_matrix.wording import counted

KV_DTYPES = {"fp8": "fp8_e4m3"}
"""What vLLM makes of a requested KV cache type, where the two names differ."""


@rule("TM020", "Parallel sizes do not fill the slice")
def parallel_sizes(context: Context) -> Iterator[Problem]:
    """Tp x dp x pp + idle equals the devices of the slice, which are neither cores nor chips."""
    for row in context.matrix.rows():
        if row.hardware is None:
            continue
        parallel, slice_ = row.item.parallel, row.hardware.slice
        if parallel.devices + parallel.idle == row.hardware.devices:
            continue
        sizes = f"tp {parallel.tp} x dp {parallel.dp} x pp {parallel.pp} + idle {parallel.idle}"
        message = (
            f"{sizes} is {counted(parallel.devices + parallel.idle, 'device')}, while {slice_.id} has "
            f"{row.hardware.devices} ({counted(slice_.chips, 'chip')}, {counted(slice_.cores, 'core')})"
        )
        remedy = "change the sizes or the slice, or name the unused devices with `idle`"
        yield Problem(row.locate("parallel"), message, remedy)


@rule("TM021", "The chip lacks the KV cache type")
def kv_cache_dtype(context: Context) -> Iterator[Problem]:
    """A KV cache type is one that the chip computes with, not one it would store as another."""
    for row in context.matrix.rows():
        requested = row.item.kv_cache_dtype
        if row.hardware is None or requested == "auto":
            continue
        effective = KV_DTYPES.get(requested, requested)
        native = row.hardware.generation.native_dtypes
        if effective not in native:
            asked = requested if requested == effective else f"{requested} ({effective})"
            message = f"the KV cache type {asked} is not native to {row.hardware.generation.id}"
            usable = [name for name in get_args(KvCacheDtype) if name in native]
            yield Problem(row.locate("kv_cache_dtype"), message, f"use one of: {', '.join(usable)}")


@rule("TM022", "Cores and chips of a slice disagree")
def slice_counts(context: Context) -> Iterator[Problem]:
    """A slice has as many cores as its chips have together."""
    generations = {entry.item.id: entry.item for entry in context.matrix.generations}
    for entry in context.matrix.slices:
        generation = generations.get(entry.item.generation)
        if generation is None:
            continue
        expected = entry.item.chips * generation.cores_per_chip
        if entry.item.cores != expected:
            chips, cores = counted(entry.item.chips, "chip"), counted(expected, "core")
            message = f"{chips} of {generation.id} make {cores}, not {entry.item.cores}"
            yield Problem(entry.locate("cores"), message, "correct cores or chips")


@rule("TM023", "Recommended hardware is not tested continuously")
def recommended_without_ci(context: Context) -> Iterator[Problem]:
    """Only a generation with scheduled runs is recommended."""
    continuous = {entry.item.id for entry in context.matrix.generations if entry.item.continuous_ci}
    for entry in context.matrix.slices:
        if entry.item.status == "recommended" and entry.item.generation not in continuous:
            message = (
                f"{entry.item.id} is recommended, but {entry.item.generation} has no continuous CI"
            )
            yield Problem(entry.locate("status"), message, "make it experimental")
