"""JSON Schema for editors and producers, generated from the typed models."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel

from tpu_matrix.evidence.record import Record
from tpu_matrix.matrix.model import FamilyFile, FeatureFile, HardwareFile, TierFile

_MODELS: dict[str, type[BaseModel]] = {
    "family": FamilyFile,
    "features": FeatureFile,
    "hardware": HardwareFile,
    "record": Record,
    "tiers": TierFile,
}


def schema_files() -> dict[str, str]:
    """Returns every schema by its file name, as canonical JSON."""
    return {
        f"{name}.schema.json": json.dumps(_schema(model), indent=2, sort_keys=True) + "\n"
        for name, model in _MODELS.items()
    }


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return head | model.model_json_schema(mode="validation")
