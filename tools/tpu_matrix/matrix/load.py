"""From a support_matrix directory to typed claims, with every finding on the way."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from tpu_matrix.errors import MatrixError
from tpu_matrix.matrix.claims import Family, Hardware, Matrix, Sourced, SourcedRow, row_path
from tpu_matrix.matrix.document import Document, KeyPath, parse
from tpu_matrix.matrix.finding import Finding, Location
from tpu_matrix.matrix.model import (
    FamilyFile,
    Feature,
    FeatureFile,
    HardwareFile,
    Row,
    RowDefaults,
    TierFile,
    Tombstone,
)
from tpu_matrix.matrix.validation import validate

DIRECTORY_NAME = "support_matrix"


def find_root(given: Path | None, start: Path | None = None) -> Path:
    """Returns the matrix directory: the given one, or the nearest upwards from `start`.

    Raises:
        MatrixError: there is none.
    """
    if given is not None:
        if not given.is_dir():
            raise MatrixError(given, "this is not a directory", "give --matrix DIR")
        return given
    start = (start or Path.cwd()).resolve()
    for directory in (start, *start.parents):
        candidate = directory / DIRECTORY_NAME
        if candidate.is_dir():
            return candidate
    found = f"there is no {DIRECTORY_NAME}/ here or in a directory above"
    raise MatrixError(start, found, "change into the repository or give --matrix DIR")


@dataclasses.dataclass(frozen=True)
class Loaded:
    """Whatever could be read, and every finding of reading it."""

    matrix: Matrix
    findings: tuple[Finding, ...]


def load(root: Path) -> Loaded:
    """Reads all claims below `root`; a part that cannot be read becomes findings."""
    reader = _Reader(root)
    tiers = reader.items("tiers.yaml", TierFile, "tiers")
    generations = reader.items("hardware.yaml", HardwareFile, "generations")
    slices = reader.items("hardware.yaml", HardwareFile, "slices")
    features = reader.items("features.yaml", FeatureFile, "features")
    by_generation = {generation.item.id: generation.item for generation in generations}
    hardware = {
        slice_.item.id: Hardware(slice_.item, by_generation[slice_.item.generation])
        for slice_ in slices
        if slice_.item.generation in by_generation
    }
    families = reader.families(hardware, tuple(feature.item for feature in features))
    matrix = Matrix(root, tiers, generations, slices, features, families)
    return Loaded(matrix, tuple(sorted(set(reader.findings))))


class _Reader:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.findings: list[Finding] = []
        self._files: dict[str, tuple[Document, Any] | None] = {}

    def items(self, name: str, model: type[BaseModel], field: str) -> tuple[Sourced[Any], ...]:
        """Returns the entries of one list of a file, each with its place."""
        if name not in self._files:
            document = self._parse(self.root / name)
            content = self._validated(document, model) if document is not None else None
            self._files[name] = (document, content) if document and content else None
        entry = self._files[name]
        if entry is None:
            return ()
        document, content = entry
        return tuple(
            Sourced(item, document, (field, index))
            for index, item in enumerate(getattr(content, field))
        )

    def families(
        self, hardware: dict[str, Hardware], features: tuple[Feature, ...]
    ) -> tuple[Family, ...]:
        """Returns the family files in the order of their names."""
        directory = self.root / "models"
        paths = sorted(directory.glob("*.yaml"))
        if not paths:
            where = Location(directory)
            self.findings.append(
                Finding(where, "TM001", "there is no family file", "add models/<family>.yaml")
            )
        families = (self._family(path, hardware, features) for path in paths)
        return tuple(family for family in families if family is not None)

    def _family(
        self, path: Path, hardware: dict[str, Hardware], features: tuple[Feature, ...]
    ) -> Family | None:
        document = self._parse(path)
        if document is None:
            return None
        if not isinstance(document.data, dict):
            self._validated(document, FamilyFile)
            return None
        # Rows are validated one by one, so that a broken row hides no other.
        data = dict(document.data)
        raw_rows, raw_defaults = data.pop("rows", []), data.pop("defaults", {})
        frame = self._validated(document, FamilyFile, data)
        defaults = self._defaults(document, raw_defaults)
        models = frame.models if frame is not None else {}
        title = frame.title if frame is not None else path.stem
        # Of two models that list a checkpoint the first shows; the second is a finding.
        by_checkpoint = {
            checkpoint: model
            for model in reversed(models.values())
            for checkpoint in model.checkpoints
        }
        rows = []
        for index, raw in self._entries(document, raw_rows):
            row = self._row(document, index, raw, defaults)
            if row is not None:
                model = by_checkpoint.get(row.checkpoint)
                slice_ = hardware.get(row.hardware)
                key_path = ("rows", index)
                rows.append(
                    SourcedRow(row, document, key_path, path.stem, title, model, slice_, features)
                )
        removed = tuple(
            Sourced[Tombstone](item, document, ("removed", index))
            for index, item in enumerate(frame.removed if frame is not None else ())
        )
        return Family(path.stem, title, document, models, tuple(rows), removed)

    def _entries(self, document: Document, raw_rows: Any) -> list[tuple[int, dict[str, Any]]]:
        if not isinstance(raw_rows, list):
            self._add(document, ("rows",), "'rows' is not a list", "write `- id: ...` for each row")
            return []
        entries = []
        for index, raw in enumerate(raw_rows):
            if isinstance(raw, dict):
                entries.append((index, raw))
            else:
                self._add(document, ("rows", index), "a row is not a mapping", "write `id: ...`")
        return entries

    def _defaults(self, document: Document, raw: Any) -> dict[str, Any]:
        def locate(key_path: KeyPath, of_key: bool) -> Location:
            return document.locate(("defaults", *key_path), of_key=of_key)

        result = validate(RowDefaults, raw, locate)
        if isinstance(result, list):
            self.findings += result
            return {}
        return dict(raw)

    def _row(
        self, document: Document, index: int, raw: dict[str, Any], defaults: dict[str, Any]
    ) -> Row | None:
        def locate(key_path: KeyPath, of_key: bool) -> Location:
            return document.locate(row_path(document, ("rows", index), key_path), of_key=of_key)

        result = validate(Row, defaults | raw, locate)
        if isinstance(result, list):
            self.findings += result
            return None
        return result

    def _parse(self, path: Path) -> Document | None:
        document, findings = parse(path)
        self.findings += findings
        return document

    def _validated[M: BaseModel](
        self, document: Document, model: type[M], data: Any = None
    ) -> M | None:
        def locate(key_path: KeyPath, of_key: bool) -> Location:
            return document.locate(key_path, of_key=of_key)

        result = validate(model, document.data if data is None else data, locate)
        if isinstance(result, list):
            self.findings += result
            return None
        return result

    def _add(self, document: Document, key_path: KeyPath, message: str, remedy: str) -> None:
        self.findings.append(Finding(document.locate(key_path), "TM006", message, remedy))
