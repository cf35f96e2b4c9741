"""From pydantic's errors to findings with a place and a remedy."""

from __future__ import annotations

import json
import re
import typing
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ValidationError

from tpu_matrix.matrix import suggestion
from tpu_matrix.matrix.document import KeyPath
from tpu_matrix.matrix.finding import Finding, Location

Locate = Callable[[KeyPath, bool], Location]
"""Gives the place of a value, or with True of its key."""


def validate[M: BaseModel](model: type[M], data: Any, locate: Locate) -> M | list[Finding]:
    """Returns the typed model of `data`, or every reason why there is none."""
    try:
        # JSON mode is strict about types and still reads dates, enums and tuples.
        return model.model_validate_json(json.dumps(data))
    except ValidationError as error:
        return [_finding(model, item, locate) for item in error.errors(include_url=False)]


def describe(model: type[BaseModel], error: ValidationError) -> list[str]:
    """Returns one phrase for each error, for data that has no line and column."""
    explained = (_explain(model, item) for item in error.errors(include_url=False))
    return [f"{message}; {remedy}" for _, message, remedy in explained]


def _finding(model: type[BaseModel], item: Any, locate: Locate) -> Finding:
    code, message, remedy = _explain(model, item)
    return Finding(locate(_key_path(item), code == "TM005"), code, message, remedy)


def _explain(model: type[BaseModel], item: Any) -> tuple[str, str, str]:
    key_path = _key_path(item)
    name = ".".join(str(part) for part in key_path) or "the value"
    kind, context = item["type"], item.get("ctx", {})
    if kind == "extra_forbidden":
        allowed = _field_names(model, key_path[:-1])
        return (
            "TM005",
            f"unknown key {name!r}",
            suggestion.remedy(str(key_path[-1]), allowed, "key"),
        )
    if kind == "missing":
        return "TM007", f"{name!r} is missing", "add it"
    if kind == "json_invalid":
        return "TM006", f"not JSON ({context.get('error', 'unreadable')})", "correct the syntax"
    if kind in ("literal_error", "enum"):
        allowed = re.findall(r"'([^']*)'", context["expected"])
        remedy = suggestion.remedy(str(item["input"]), allowed, "value")
        return "TM006", f"{name!r} is {item['input']!r}, which is not a known value", remedy
    if kind == "string_pattern_mismatch":
        return (
            "TM006",
            f"{name!r} is {item['input']!r}, which has the wrong form",
            f"match {context['pattern']}",
        )
    expected = item["msg"][0].lower() + item["msg"][1:]
    return "TM006", f"{name!r} is {_short(item['input'])}", f"correct it: {expected}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _key_path(item: Any) -> KeyPath:
    # A failing dictionary key is reported below its value's place, as "[key]".
    return tuple(part for part in item["loc"] if part != "[key]")


def _field_names(model: type[BaseModel], key_path: KeyPath) -> list[str]:
    current: Any = model
    for part in key_path:
        found = _model_inside(current)
        if found is not None and part in found.model_fields:
            current = found.model_fields[str(part)].annotation
    found = _model_inside(current)
    return list(found.model_fields) if found is not None else []


def _model_inside(annotation: Any) -> type[BaseModel] | None:
    """Returns the model within `tuple[M, ...]`, `dict[str, M]` or `M | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in typing.get_args(annotation):
        found = _model_inside(argument)
        if found is not None:
            return found
    return None
