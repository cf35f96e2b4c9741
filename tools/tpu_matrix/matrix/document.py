"""YAML text to plain data that remembers where every value stands.

The YAML here is a subset on purpose: mappings, lists and scalars of YAML 1.2's core
schema.  Anchors, aliases and tags are findings, so that a file can neither expand (the
"billion laughs" bomb) nor refer to itself, and `yes`, `on` or `1:30` stay text.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tpu_matrix.matrix.finding import Finding, Location

KeyPath = tuple[str | int, ...]

_PLAIN, _QUOTED, _LIST, _MAP = "plain", "quoted", "list", "map"
_REFUSED = object()
"""What stands for a part that is already a finding, so that it causes no second one."""
_OWN_TAGS = {_PLAIN, _QUOTED, _LIST, _MAP}

_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]{1,30}|[0-9]{1,30}(\.[0-9]{0,30})?)([eE][-+]?[0-9]{1,2})?")
_WORDS: dict[str, Any] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}

# libyaml reads ten thousand rows in seconds, the pure Python parser in a minute.
_BaseLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _PositionLoader(_BaseLoader):
    """Marks implicit nodes with our own tags, so that any other tag was written by hand."""

    def resolve(self, kind: type, value: Any, implicit: Any) -> str:
        """Returns how the node was written, instead of guessing its YAML 1.1 type."""
        if kind is yaml.ScalarNode:
            return _PLAIN if implicit[0] else _QUOTED
        return _LIST if kind is yaml.SequenceNode else _MAP


@dataclasses.dataclass(frozen=True)
class Document:
    """One parsed file: its data and, through the node tree, every position."""

    path: Path
    data: Any
    root: yaml.Node | None
    line_count: int

    def locate(self, key_path: KeyPath = (), *, of_key: bool = False) -> Location:
        """Returns where the value at `key_path` stands, or its nearest existing parent.

        Args:
            key_path: mapping keys and list indices from the top.
            of_key: point at the last key itself instead of its value.
        """
        node, mark_node = self.root, self.root
        for depth, part in enumerate(key_path):
            step = _child(node, part)
            if step is None:
                break
            key_node, node = step
            last = depth == len(key_path) - 1
            mark_node = key_node if (of_key and last and key_node is not None) else node
        return _location(self.path, mark_node)

    def line_span(self, key_path: KeyPath) -> int:
        """Returns how many lines the block at `key_path` covers, blank tail left out."""
        node: yaml.Node | None = self.root
        for part in key_path:
            step = _child(node, part)
            if step is None:
                return 0
            node = step[1]
        return _last_line(node) - node.start_mark.line + 1 if node is not None else 0


def parse(path: Path) -> tuple[Document | None, list[Finding]]:
    """Reads one YAML file; returns None in place of a document that cannot be used."""
    text, findings = _read_text(path)
    if text is None:
        return None, findings
    loader = None
    try:
        loader = _PositionLoader(text)
        root = loader.get_single_node()
    except yaml.YAMLError as error:
        return None, [_syntax_finding(path, error)]
    except RecursionError:
        where = Location(path)
        return None, [Finding(where, "TM002", "the nesting is too deep", "flatten the file")]
    finally:
        if loader is not None:
            loader.dispose()
    if root is None:
        return None, [Finding(Location(path), "TM002", "the file is empty", "write its content")]
    builder = _Builder(path)
    data = builder.build(root)
    if data is _REFUSED:
        return None, builder.findings
    return Document(path, data, root, text.count("\n") + 1), builder.findings


def _read_text(path: Path) -> tuple[str | None, list[Finding]]:
    try:
        return path.read_bytes().decode("utf-8"), []
    except FileNotFoundError:
        finding = Finding(Location(path), "TM001", "the file is missing", "create it")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        finding = Finding(
            Location(path, line), "TM001", "the file is not UTF-8", "save it as UTF-8"
        )
    except OSError as error:
        reason = error.strerror or type(error).__name__
        finding = Finding(
            Location(path),
            "TM001",
            f"the file cannot be read ({reason})",
            "make it a readable file",
        )
    return None, [finding]


def _syntax_finding(path: Path, error: yaml.YAMLError) -> Finding:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "unreadable"
    message = f"not valid YAML: {problem}"
    return Finding(Location(path, line, column), "TM002", message, "correct the syntax there")


class _Builder:
    """Turns nodes into data and collects what the YAML subset does not allow."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.findings: list[Finding] = []
        self._seen: set[int] = set()

    def build(self, node: yaml.Node) -> Any:
        """Returns the data of one node."""
        # The composer hands out one node for an anchor and all its aliases.
        if id(node) in self._seen:
            self._add(node, "TM004", "an alias repeats this part elsewhere", "write it out there")
            return _REFUSED
        self._seen.add(id(node))
        if node.tag not in _OWN_TAGS:
            self._add(node, "TM004", f"the tag {node.tag} is not allowed", "remove the tag")
            return _REFUSED
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node)
        if isinstance(node, yaml.SequenceNode):
            built = [self.build(child) for child in node.value]
            # The place of a refused entry stays taken, or indices would point elsewhere.
            return [None if value is _REFUSED else value for value in built]
        return _scalar(node.value, node.tag)

    def _mapping(self, node: yaml.MappingNode) -> dict[str, Any]:
        data: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode) or key_node.value == "<<":
                self._add(key_node, "TM004", "a key must be plain text", "name the key")
                continue
            key, line = key_node.value, key_node.start_mark.line + 1
            if key in data:
                message = f"{key!r} is already set in line {lines[key]}"
                self._add(key_node, "TM003", message, "keep one of the two")
                continue
            value = self.build(value_node)
            if value is not _REFUSED:
                data[key], lines[key] = value, line
        return data

    def _add(self, node: yaml.Node, code: str, message: str, remedy: str) -> None:
        self.findings.append(Finding(_location(self.path, node), code, message, remedy))


def _scalar(text: str, tag: str) -> Any:
    if tag == _QUOTED:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _child(node: yaml.Node | None, part: str | int) -> tuple[yaml.Node | None, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for key_node, value_node in node.value:
            if key_node.value == part:
                return key_node, value_node
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return None, node.value[part]
    return None


def _location(path: Path, node: yaml.Node | None) -> Location:
    if node is None:
        return Location(path)
    return Location(path, node.start_mark.line + 1, node.start_mark.column + 1)


def _last_line(node: yaml.Node) -> int:
    # A block collection's end mark stands at the next token, behind comments and blanks.
    if isinstance(node, yaml.ScalarNode) or getattr(node, "flow_style", False):
        return node.end_mark.line
    return max((_last_line(child) for child in _children(node)), default=node.start_mark.line)


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    for child in node.value:
        if isinstance(child, tuple):
            yield from child
        else:
            yield child
