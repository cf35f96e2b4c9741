"""Rules about names: which row is meant, and what is tested under its name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tpu_matrix.matrix import suggestion
from tpu_matrix.matrix.claims import SNAPSHOT_NAME, Sourced
from tpu_matrix.matrix.command import FIELD_OPTIONS, PARALLEL_OPTIONS
from tpu_matrix.matrix.finding import Location
from tpu_matrix.matrix.rules.registry import Context, Problem, rule

MOST_ROW_LINES = 15
KNOWN_FILES = ("tiers.yaml", "hardware.yaml", "features.yaml", SNAPSHOT_NAME)


@rule("TM008", "A file is not read")
def file_without_reader(context: Context) -> Iterator[Problem]:
    """Whatever lies among the claims is one of the files that are read."""
    root = context.matrix.root
    known = {root / name for name in KNOWN_FILES} | set(root.glob("models/*.yaml"))
    known |= set(root.glob("schema/*.json"))
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root)
        hidden = any(part.startswith(".") for part in name.parts)
        if path not in known and path.suffix != ".md" and not hidden and not path.is_dir():
            message = f"nothing reads {name}, so its claims have no effect"
            yield Problem(Location(path), message, f"use {', '.join(KNOWN_FILES)} or models/*.yaml")


@rule("TM010", "An id is used twice")
def duplicate_id(context: Context) -> Iterator[Problem]:
    """Rows of all families, and the entries of each other file, have distinct ids."""
    for group in (
        context.matrix.tiers,
        context.matrix.generations,
        context.matrix.slices,
        context.matrix.features,
        tuple(context.matrix.rows()),
    ):
        yield from _duplicates(group)


def _duplicates(entries: Iterable[Sourced]) -> Iterator[Problem]:
    first: dict[str, Sourced] = {}
    for entry in entries:
        earlier = first.setdefault(entry.item.id, entry)
        if earlier is not entry:
            message = f"the id {entry.item.id!r} is already used at {earlier.locate('id')}"
            yield Problem(entry.locate("id"), message, "give each its own id")


@rule("TM011", "A name refers to nothing")
def unknown_reference(context: Context) -> Iterator[Problem]:
    """Hardware, generations and features named by a claim exist."""
    slices = {entry.item.id for entry in context.matrix.slices}
    generations = {entry.item.id for entry in context.matrix.generations}
    features = {entry.item.id for entry in context.matrix.features}
    for row in context.matrix.rows():
        if slices and row.item.hardware not in slices:
            remedy = suggestion.remedy(row.item.hardware, slices, "slice")
            message = f"the hardware {row.item.hardware!r} is not in hardware.yaml"
            yield Problem(row.locate("hardware"), message, remedy)
        for index, name in enumerate(row.item.features):
            if features and name not in features:
                where = row.locate("features", index)
                yield _unknown_feature(where, name, features)
    for entry in context.matrix.slices:
        if entry.item.generation not in generations:
            remedy = suggestion.remedy(entry.item.generation, generations, "generation")
            message = f"the generation {entry.item.generation!r} is not described"
            yield Problem(entry.locate("generation"), message, remedy)
    for entry in context.matrix.features:
        for key in ("requires", "conflicts"):
            for index, name in enumerate(getattr(entry.item, key)):
                if name not in features:
                    yield _unknown_feature(entry.locate(key, index), name, features)


def _unknown_feature(where: Location, name: str, features: set[str]) -> Problem:
    remedy = suggestion.remedy(name, features, "feature")
    return Problem(where, f"the feature {name!r} is not in features.yaml", remedy)


@rule("TM012", "The checkpoint tested belongs to no model, or to two")
def checkpoint_without_model(context: Context) -> Iterator[Problem]:
    """A row displays the model that lists its checkpoint, and no other."""
    for family in context.matrix.families:
        if not family.models:
            continue  # They could not be read, which is a finding already.
        owners: dict[str, str] = {}
        for model_id, model in family.models.items():
            for index, checkpoint in enumerate(model.checkpoints):
                owner = owners.setdefault(checkpoint, model_id)
                if owner != model_id:
                    where = family.document.locate(("models", model_id, "checkpoints", index))
                    message = f"the checkpoint {checkpoint!r} also belongs to {owner!r}"
                    yield Problem(where, message, "list it under one model")
        for row in family.rows:
            if row.item.checkpoint not in owners:
                message = f"no model of this file lists the checkpoint {row.item.checkpoint!r}"
                remedy = suggestion.remedy(row.item.checkpoint, owners, "checkpoint")
                yield Problem(row.locate("checkpoint"), message, remedy)


@rule("TM013", "A family file has another name than its family")
def family_file_name(context: Context) -> Iterator[Problem]:
    """models/<family>.yaml holds the family of that name."""
    for family in context.matrix.families:
        written = family.document.data.get("family")
        if isinstance(written, str) and written != family.id:
            where = family.document.locate(("family",))
            message = f"the family is {written!r} in a file named {family.id!r}"
            yield Problem(where, message, f"rename the file to {written}.yaml")


@rule("TM014", "A row is too long")
def row_length(context: Context) -> Iterator[Problem]:
    """A row takes at most 15 lines; what rows share belongs to the file's defaults."""
    for row in context.matrix.rows():
        lines = row.document.line_span(row.key_path)
        if lines > MOST_ROW_LINES:
            message = f"the row {row.slug!r} takes {lines} lines, of {MOST_ROW_LINES} allowed"
            yield Problem(row.locate(), message, "move what rows share to `defaults`")


@rule("TM015", "A serve argument repeats a field")
def repeated_option(context: Context) -> Iterator[Problem]:
    """What a field says is not said again, perhaps otherwise, in `serve_args`."""
    fields = {option: field for field, option in FIELD_OPTIONS.items()}
    fields |= {option: f"parallel.{key}" for key, option in PARALLEL_OPTIONS.items()}
    for entry in context.matrix.features:
        for argument in (*entry.item.on, *entry.item.off):
            option = argument.removeprefix("--").partition("=")[0]
            fields[option] = f"features ({entry.item.id})"
    for row in context.matrix.rows():
        for option in row.item.serve_args:
            if option in fields:
                where = row.locate("serve_args", option, of_key=True)
                message = f"the option {option!r} is set by {fields[option]}"
                yield Problem(where, message, f"use {fields[option]}")


@rule("TM016", "A removed row is still there")
def living_tombstone(context: Context) -> Iterator[Problem]:
    """A tombstone's id is gone, and its replacement exists."""
    for family in context.matrix.families:
        for stone in family.removed:
            if stone.item.id in context.matrix.by_slug:
                message = f"{stone.item.id!r} is listed as removed, but is a row"
                yield Problem(stone.locate("id"), message, "remove one of the two")
            replacement = stone.item.replacement
            if replacement is not None and replacement not in context.matrix.by_slug:
                remedy = suggestion.remedy(replacement, context.matrix.by_slug, "row")
                message = f"the replacement {replacement!r} is not a row"
                yield Problem(stone.locate("replacement"), message, remedy)
