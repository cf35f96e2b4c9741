"""Rules about promises: a tier needs a test, and a test needs something to reach."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from tpu_matrix.matrix.finding import Location
from tpu_matrix.matrix.model import Tier
from tpu_matrix.matrix.rules.registry import Context, Problem, rule


@rule("TM030", "A tier has no test behind it")
def tier_without_check(context: Context) -> Iterator[Problem]:
    """A row whose tier promises scheduled runs has a check for its own hardware."""
    for row in context.matrix.rows():
        on_hardware = row.item.checks.keys() - {"virtual"}
        if row.item.tier in ("per-pr", "nightly") and not on_hardware:
            message = f"the tier {row.item.tier} promises runs, but no check could fail"
            yield Problem(row.locate("tier"), message, "add `checks: {accuracy: ...}`")


@rule("TM031", "A threshold is not above zero")
def threshold_of_zero(context: Context) -> Iterator[Problem]:
    """Every run passes a threshold of zero."""
    for row in context.matrix.rows():
        for name, check in row.item.checks.items():
            if check.at_least <= 0:
                message = f"{name} passes at {check.at_least:g}, which every run reaches"
                yield Problem(
                    row.locate("checks", name, "at_least"), message, "use a measured value above 0"
                )


@rule("TM032", "A quarantine has expired")
def expired_quarantine(context: Context) -> Iterator[Problem]:
    """A quarantine ends on its date; then the row blocks again."""
    for row in context.matrix.rows():
        quarantine = row.item.quarantine
        if quarantine is not None and quarantine.until < context.today:
            message = f"the quarantine ended on {quarantine.until}"
            remedy = f"remove it, or agree on another date in {quarantine.issue}"
            yield Problem(row.locate("quarantine", "until"), message, remedy)


@rule("TM033", "Features conflict or lack what they require")
def feature_relations(context: Context) -> Iterator[Problem]:
    """A row claims no two features that conflict, and all that its features require."""
    features = {entry.item.id: entry.item for entry in context.matrix.features}
    for row in context.matrix.rows():
        claimed = row.item.features
        for index, name in enumerate(claimed):
            feature = features.get(name)
            if feature is None:
                continue
            where = row.locate("features", index)
            for other in feature.conflicts:
                if other in claimed:
                    yield Problem(where, f"{name} conflicts with {other}", "claim one of the two")
            for other in feature.requires:
                if other not in claimed:
                    yield Problem(where, f"{name} requires {other}", f"add {other}")


@rule("TM034", "A tier is not described")
def missing_tier(context: Context) -> Iterator[Problem]:
    """tiers.yaml describes all tiers, since each one's promise is shown to readers."""
    described = {entry.item.id for entry in context.matrix.tiers}
    if not described:
        return
    for tier in get_args(Tier):
        if tier not in described:
            where = Location(context.matrix.root / "tiers.yaml")
            yield Problem(where, f"the tier {tier!r} is not described", "add its entry")
