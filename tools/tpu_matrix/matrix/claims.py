"""The loaded matrix: every claim with the place it was written at."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from pathlib import Path

from tpu_matrix.matrix.command import serve_argv
from tpu_matrix.matrix.document import Document, KeyPath
from tpu_matrix.matrix.finding import Location
from tpu_matrix.matrix.identity import args_hash, row_id
from tpu_matrix.matrix.model import (
    Feature,
    Generation,
    Model,
    Row,
    Slice,
    TierPromise,
    Tombstone,
)

SNAPSHOT_NAME = "evidence-snapshot.jsonl"
"""The committed evidence beside the claims, from which the pages are rendered."""


@dataclasses.dataclass(frozen=True)
class Sourced[Item]:
    """A claim and where it stands."""

    item: Item
    document: Document
    key_path: KeyPath

    def locate(self, *below: str | int, of_key: bool = False) -> Location:
        """Returns the place of the claim, or of a value below it."""
        return self.document.locate(self.key_path + below, of_key=of_key)


@dataclasses.dataclass(frozen=True)
class Hardware:
    """A slice with the generation it is made of."""

    slice: Slice
    generation: Generation

    @property
    def devices(self) -> int:
        """Devices the runtime shows on the whole slice."""
        return self.slice.chips * self.generation.devices_per_chip


@dataclasses.dataclass(frozen=True)
class SourcedRow(Sourced[Row]):
    """A row with everything that its file adds to it."""

    family: str
    family_title: str
    model: Model | None
    hardware: Hardware | None
    features: tuple[Feature, ...]
    """All features of the matrix, for the arguments of those that the row leaves off."""

    def locate(self, *below: str | int, of_key: bool = False) -> Location:
        """Returns the place of the row, or of a value that it has, its own or by default."""
        return self.document.locate(row_path(self.document, self.key_path, below), of_key=of_key)

    @property
    def slug(self) -> str:
        """The id as a person wrote it."""
        return self.item.id

    @property
    def name(self) -> str:
        """The display name: the model's, or the checkpoint where no model lists it."""
        return self.model.name if self.model is not None else self.item.checkpoint

    @functools.cached_property
    def argv(self) -> tuple[str, ...]:
        """The exact command that the row claims and its tests run."""
        return serve_argv(self.item, self.features)

    @functools.cached_property
    def args_hash(self) -> str:
        """The hash of everything that changes what is tested."""
        return args_hash(self.item, self.argv)

    @property
    def id(self) -> str:
        """The stable id: slug, hardware and the start of the hash."""
        return row_id(self.item.id, self.item.hardware, self.args_hash)


def row_path(document: Document, row: KeyPath, below: KeyPath) -> KeyPath:
    """Returns where a value of a row is written: in the row, or in the file's defaults."""
    if below and isinstance(document.data, dict):
        defaults, index = document.data.get("defaults"), row[-1]
        own = document.data["rows"][index]
        if below[0] not in own and isinstance(defaults, dict) and below[0] in defaults:
            return ("defaults", *below)
    return (*row, *below)


@dataclasses.dataclass(frozen=True)
class Family:
    """The contents of one file under models/."""

    id: str
    title: str
    document: Document
    models: dict[str, Model]
    rows: tuple[SourcedRow, ...]
    removed: tuple[Sourced[Tombstone], ...]


@dataclasses.dataclass(frozen=True)
class Matrix:
    """All claims of one support_matrix directory."""

    root: Path
    tiers: tuple[Sourced[TierPromise], ...]
    generations: tuple[Sourced[Generation], ...]
    slices: tuple[Sourced[Slice], ...]
    features: tuple[Sourced[Feature], ...]
    families: tuple[Family, ...]

    @property
    def snapshot(self) -> Path:
        """The file of committed evidence, which need not exist."""
        return self.root / SNAPSHOT_NAME

    def rows(self) -> Iterator[SourcedRow]:
        """Yields every row, by family file and in the order written."""
        for family in self.families:
            yield from family.rows

    @functools.cached_property
    def by_slug(self) -> dict[str, SourcedRow]:
        """Rows by slug; the first wins where a slug is written twice."""
        index: dict[str, SourcedRow] = {}
        for row in self.rows():
            index.setdefault(row.slug, row)
        return index

    @functools.cached_property
    def fresh_for_days(self) -> dict[str, int]:
        """How long the evidence of each tier counts."""
        return {tier.item.id: tier.item.fresh_for_days for tier in self.tiers}
