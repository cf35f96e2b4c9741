"""The Markdown pages of the matrix, from claims and evidence alone."""

from __future__ import annotations

import datetime as dt
import shlex
from collections.abc import Mapping, Sequence

from tpu_matrix.evidence.admission import checks_of
from tpu_matrix.evidence.record import Kind, Record
from tpu_matrix.matrix.claims import Family, Matrix, SourcedRow
from tpu_matrix.matrix.rules import RULES
from tpu_matrix.matrix.status import Cell, Status, matrix_cells, worst
from tpu_matrix.render.markdown import code, link, page, table, text
from tpu_matrix.wording import counted

MISSING_COMBINATION = (
    "A combination that is not listed here is "
    "**not validated in that way; it is not known to be broken**."
)
"""The words that stand above every table."""

COLUMNS: dict[Kind, str] = {
    "hardware": "On its hardware",
    "compiles": "Compiles",
    "virtual": "Virtual TPU",
}
"""The columns of evidence; the last two never raise the first."""

_COLUMNS_EXPLAINED = (
    "Only the column *On its hardware* speaks about a TPU. *Compiles* means that the real "
    "TPU compiler accepted the row's graphs; *Virtual TPU* means that a run on a host "
    "without a TPU matched its reference. Neither raises the hardware column."
)

Cells = Mapping[str, Mapping[Kind, Cell]]


def render_pages(matrix: Matrix, records: Sequence[Record]) -> dict[str, str]:
    """Returns every page by its relative path.

    Statuses are those of the moment of the newest record, so that the same claims and
    evidence give the same bytes on any day.
    """
    as_of = max((record.finished for record in records), default=None)
    moment = as_of or dt.datetime.fromtimestamp(0, dt.UTC)
    cells = matrix_cells(matrix, records, moment)
    pages = {"index.md": _overview(matrix, cells, as_of), "rules/index.md": _rules()}
    for family in matrix.families:
        pages[f"{family.id}.md"] = _family(family, cells, as_of)
    return pages


def _overview(matrix: Matrix, cells: Cells, as_of: dt.datetime | None) -> str:
    tiers = [
        [code(tier.item.id), text(tier.item.promise), f"{tier.item.fresh_for_days} days"]
        for tier in matrix.tiers
    ]
    return page(
        "# Support matrix",
        "What is claimed, and what runs have shown; "
        + link("how to read and change it", "guide.md")
        + ".",
        _as_of(as_of),
        "## Families",
        f"{MISSING_COMBINATION} {_COLUMNS_EXPLAINED}",
        table(
            ["Family", "Slice", "Rows", f"Worst {COLUMNS['hardware'].lower()}"],
            _roll_up(matrix, cells),
        ),
        "## Tiers",
        table(["Tier", "Promise", "Evidence counts for"], tiers),
        "## Hardware",
        "vLLM's parallel sizes count devices. A slice of `v7x` or `v5p` is named after its "
        "cores, one of `v6e` or `v5e` after its chips. " + MISSING_COMBINATION,
        _hardware_table(matrix),
    )


def _roll_up(matrix: Matrix, cells: Cells) -> list[list[str]]:
    """Returns a line for each family and slice: a worst status never spans two slices."""
    lines = []
    for family in matrix.families:
        statuses: dict[str, list[Status]] = {}
        for row in family.rows:
            statuses.setdefault(row.item.hardware, []).append(cells[row.id]["hardware"].status)
        title = link(text(family.title), f"{family.id}.md")
        for slice_id in sorted(statuses):
            found = statuses[slice_id]
            lines.append([title, code(slice_id), str(len(found)), worst(found)])
    return lines


def _hardware_table(matrix: Matrix) -> str:
    generations = {entry.item.id: entry.item for entry in matrix.generations}
    rows = []
    for entry in matrix.slices:
        generation = generations.get(entry.item.generation)
        if generation is None:
            continue
        rows.append(
            [
                code(entry.item.id),
                text(generation.title),
                str(entry.item.chips),
                str(entry.item.cores),
                str(entry.item.chips * generation.devices_per_chip),
                f"{generation.hbm_per_device_gib} GiB",
                ", ".join(code(dtype) for dtype in generation.native_dtypes),
                entry.item.status,
            ]
        )
    header = ["Slice", "Chip", "Chips", "Cores", "Devices", "HBM per device", "Native", "Status"]
    return table(header, rows)


def _family(family: Family, cells: Cells, as_of: dt.datetime | None) -> str:
    header = ["Model and checkpoint", "Hardware", "Served with", "Tier", *COLUMNS.values()]
    rows = [_table_row(row, cells[row.id]) for row in family.rows]
    details = [_details(row, cells[row.id]) for row in family.rows]
    return page(
        f"# {text(family.title)}",
        f"{MISSING_COMBINATION} {_COLUMNS_EXPLAINED}",
        _as_of(as_of),
        table(header, rows) if rows else "There is no row yet.",
        *details,
        _removed(family),
    )


def _table_row(row: SourcedRow, cells: Mapping[Kind, Cell]) -> list[str]:
    name = link(text(row.name), row.model.link) if row.model is not None else text(row.name)
    statuses = [_status_link(row, cells[kind]) for kind in COLUMNS]
    return [
        f"{name}<br>{code(row.item.checkpoint)}",
        _hardware(row),
        _served_with(row),
        code(row.item.tier),
        *statuses,
    ]


def _hardware(row: SourcedRow) -> str:
    if row.hardware is None:
        return code(row.item.hardware)
    slice_ = row.hardware.slice
    size = f"{counted(slice_.chips, 'chip')}, {counted(slice_.cores, 'core')}"
    return f"{code(slice_.id)}<br>{size}<br>{slice_.status}"


def _served_with(row: SourcedRow) -> str:
    claim, parallel = row.item, row.item.parallel
    parts = [f"{claim.weights} weights"]
    if claim.quantization is not None:
        parts.append(f"quantised to {text(claim.quantization)}")
    if claim.kv_cache_dtype != "auto":
        parts.append(f"{claim.kv_cache_dtype} KV cache")
    parts.append(f"TP {parallel.tp}")
    parts += [f"DP {parallel.dp}"] if parallel.dp > 1 else []
    parts += [f"PP {parallel.pp}"] if parallel.pp > 1 else []
    parts += ["EP"] if parallel.ep else []
    parts += [f"{counted(parallel.idle, 'device')} idle"] if parallel.idle else []
    if claim.max_model_len is not None:
        parts.append(f"{claim.max_model_len} tokens")
    return ", ".join([*parts, *(text(feature) for feature in claim.features)])


def _status_link(row: SourcedRow, cell: Cell) -> str:
    if cell.status == "not-applicable":
        return "not-applicable"
    label = f"**{cell.status}**" if cell.status == "pass" else cell.status
    date = f"<br>{cell.record.day}" if cell.record is not None else ""
    return link(label, f"#{anchor(row)}") + date


def anchor(row: SourcedRow) -> str:
    """Returns the fragment under which a page shows a row's details."""
    return f"row-{row.slug.replace('.', '-')}"


def _details(row: SourcedRow, cells: Mapping[Kind, Cell]) -> str:
    lines = [
        f'<a id="{anchor(row)}"></a>',
        f"### {text(row.slug)}",
        f"Row {code(row.id)}.",
        f"```shell\n{shlex.join(row.argv)}\n```",
        "\n".join(f"- {_evidence(row, cells[kind])}" for kind in COLUMNS),
    ]
    if row.item.note is not None:
        lines.insert(3, text(row.item.note))
    return "\n\n".join(lines)


def _evidence(row: SourcedRow, cell: Cell) -> str:
    line = f"{COLUMNS[cell.kind]}: **{cell.status}**, {text(cell.reason)}."
    record = cell.record
    thresholds = [
        f"{text(check.metric_key)} at least {check.at_least:g}"
        for check in checks_of(row, cell.kind).values()
    ]
    if thresholds:
        line += f" To pass: {', '.join(thresholds)}."
    if record is None:
        return line
    versions = ", ".join(
        f"{name} {text(value)}" for name, value in record.versions.model_dump().items()
    )
    log = link("log", record.log) if record.log.startswith("https://") else code(record.log)
    return (
        f"{line} Run of {record.day} at commit {code(record.commit)} on "
        f"{counted(record.detected.devices, text(record.detected.device_kind) + ' device')}, attempt "
        f"{record.attempt}, by {text(record.producer)}; {versions}; {log}."
    )


def _removed(family: Family) -> str:
    if not family.removed:
        return ""
    rows = [
        [
            code(stone.item.id),
            stone.item.date.isoformat(),
            text(stone.item.reason),
            code(stone.item.replacement) if stone.item.replacement else "none",
        ]
        for stone in family.removed
    ]
    header = ["Row", "Removed on", "Reason", "Replacement"]
    return f"## Removed rows\n\n{MISSING_COMBINATION}\n\n{table(header, rows)}"


def _as_of(as_of: dt.datetime | None) -> str:
    if as_of is None:
        return "No evidence is committed yet, so nothing here has passed."
    moment = as_of.astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"Statuses as of {moment}, the newest run in the evidence."


def _rules() -> str:
    rows = [
        [link(code(rule.code), f"{rule.code}.md"), text(rule.title)]
        for rule in sorted(RULES.values(), key=lambda rule: rule.code)
    ]
    return page(
        "# Rules",
        "What `tpu-matrix lint` reports, as `file:line:column CODE message; what to do`.",
        table(["Code", "What it reports"], rows),
    )
