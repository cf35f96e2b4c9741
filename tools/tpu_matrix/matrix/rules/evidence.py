"""Rules about the committed evidence, which the pages are rendered from."""

from __future__ import annotations

from collections.abc import Iterator

from tpu_matrix.evidence.admission import CLOCK_TOLERANCE
from tpu_matrix.matrix import suggestion
from tpu_matrix.matrix.finding import Location
from tpu_matrix.matrix.rules.registry import Context, Problem, rule


@rule("TM051", "Committed evidence is about a row that is gone")
def evidence_without_row(context: Context) -> Iterator[Problem]:
    """Every record is about a row, or about one that a tombstone remembers."""
    removed = {stone.item.id for family in context.matrix.families for stone in family.removed}
    gone = {record.row_id.partition(":")[0] for record in context.committed}
    for slug in sorted(gone - context.matrix.by_slug.keys() - removed):
        remedy = suggestion.nearest(slug, context.matrix.by_slug)
        hint = f" (is it {remedy!r} now?)" if remedy is not None else ""
        message = f"there is evidence about {slug!r}, which is no row{hint}"
        yield Problem(_snapshot(context), message, "add a tombstone under `removed` of its family")


@rule("TM052", "Committed evidence comes from the future")
def evidence_from_the_future(context: Context) -> Iterator[Problem]:
    """No record finished after the present, or pages would be dated by it."""
    for record in context.committed:
        if record.finished > context.now + CLOCK_TOLERANCE:
            message = f"a run of {record.row_id} finished at {record.finished.isoformat()}"
            yield Problem(
                _snapshot(context), message, "remove the record and mend its producer's clock"
            )


def _snapshot(context: Context) -> Location:
    return Location(context.matrix.snapshot)
