"""YAML 1.2 text → a tree of nodes that keep their positions.

ruamel.yaml finds the structure; what a plain scalar means is decided by the shape that is expected at its place (see
`shape`), never by its look, so `off`, `no`, `6:40` and `1e-6` are not read as anything else. Of YAML, only mappings,
lists and scalars are taken: anchors, aliases, tags, directives and several documents are refused, and so are duplicate
keys.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from recgen.errors import SpecError
from recgen.spec.faults import QUOTE, fault_of
from recgen.spec.source import Findings, Source

MAX_BYTES = 32 * 1024
MAX_LINE = 2500
MAX_NODES = 2000
MAX_DEPTH = 12


@dataclass(frozen=True)
class Scalar:
    """A single value, still text. `plain` is False when it was quoted or written as a block."""

    text: str
    plain: bool
    start: int
    end: int
    raw: str = ""

    def position(self, offset: int) -> int:
        """Where in the file the character at `offset` of the text stands (the scalar's start when it was escaped)."""
        cursor = 0
        if not self.plain:
            cursor = self.raw.find("\n") + 1 if self.raw[:1] in "|>" else 1
        for index, character in enumerate(self.text):
            if index == offset:
                while cursor < len(self.raw) and self.raw[cursor].isspace() and not character.isspace():
                    cursor += 1
                return self.start + cursor if self.raw[cursor : cursor + 1] == character else self.start
            if not character.isspace():
                found = self.raw.find(character, cursor)
                if found < 0:
                    return self.start
                cursor = found + 1
            elif cursor < len(self.raw) and self.raw[cursor] == character:
                cursor += 1
        return min(self.start + cursor, self.end)


@dataclass(frozen=True)
class Sequence:
    items: tuple[Node, ...]
    start: int
    end: int


@dataclass(frozen=True)
class Mapping:
    """Keys in the order of the text; `keys` holds the key's own node, for its position."""

    values: dict[str, Node]
    keys: dict[str, Scalar]
    start: int
    end: int


Node = Scalar | Sequence | Mapping


def decode(data: bytes, file: str) -> str:
    """UTF-8 bytes → text, without a byte-order mark. Raises SpecError for other encodings and binary files."""
    if len(data) > MAX_BYTES:
        raise SpecError(Source(file, "").problem(0, "", f"the file is larger than {MAX_BYTES} bytes", _TOO_LARGE))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        good = data[: error.start].decode("utf-8-sig", "replace")
        source = Source(file, good + f"\\x{data[error.start]:02x}")
        raise SpecError(
            source.problem(len(good), f"\\x{data[error.start]:02x}", "the file is not UTF-8 text", "save it as UTF-8")
        ) from None


_TOO_LARGE = "one file holds one operator or one decay family; a few dozen lines are enough"
_FLATTER = "write it flatter: no key takes more than a mapping in a mapping"


def parse_document(source: Source) -> Mapping:
    """The text's one mapping. Raises SpecError, with every duplicate key and refused YAML feature that it holds."""
    _check_text(source)
    builder = _Builder(source)
    try:
        for event in YAML(typ="safe", pure=True).parse(source.text):
            builder.take(event)
    except MarkedYAMLError as error:
        fault = fault_of(source.text, error)
        found = fault.found or source.text[fault.position : fault.position + 1].strip()
        builder.refuse(fault.position, found, f"not YAML: {fault.reason}", fault.fix)
    except _YAML_FAULTS as error:
        first = (str(error).splitlines() or [""])[0]
        builder.refuse(0, "", f"not YAML: {first or type(error).__name__}", QUOTE)
    builder.findings.raise_if_any()
    if not isinstance(builder.root, Mapping):
        given = "nothing" if builder.root is None else "a list" if isinstance(builder.root, Sequence) else "one value"
        position = builder.root.start if builder.root else 0
        reason = f"a mapping of keys to values is needed here, this is {given}"
        fix = "start with `name: my_operator`, then one `key: value` a line"
        raise SpecError(source.problem(position, "", reason, fix))
    return builder.root


_YAML_FAULTS = (YAMLError, ValueError, LookupError, AssertionError, AttributeError, TypeError, NotImplementedError)
"""What the YAML reader raises for text that it was not made for."""


def _check_text(source: Source) -> None:
    """Refuses what no editor shows, before YAML sees it."""
    if len(source.text) > MAX_BYTES:
        raise SpecError(source.problem(0, "", f"the text is longer than {MAX_BYTES} characters", _TOO_LARGE))
    start = 0
    for line in source.text.splitlines(keepends=True):
        if len(line) > MAX_LINE:
            reason = f"the line is longer than {MAX_LINE} characters"
            raise SpecError(source.problem(start, line[:20], reason, "break it"))
        start += len(line)
    for position, character in enumerate(source.text):
        if character in "\n\r\t" or character.isprintable():
            continue
        if unicodedata.category(character) == "Zs":
            reason, fix = "this space is not a plain one", "type it again with the space bar"
        elif character == "\0":
            reason, fix = "a NUL byte: this is not a text file", "give the YAML file of a spec"
        else:
            reason, fix = "a control or invisible character", "remove it"
        raise SpecError(source.problem(position, ascii(character)[1:-1], reason, fix))


@dataclass
class _Open:
    """A collection whose end has not come yet."""

    start: int
    is_mapping: bool
    values: list[Any] = field(default_factory=list)


class _Builder:
    """Events → nodes, without recursion."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.findings = Findings()
        self.root: Node | None = None
        self.open: list[_Open] = []
        self.count = 0
        self.documents = 0

    def take(self, event: Any) -> None:
        start = event.start_mark.index
        if isinstance(event, DocumentStartEvent):
            self._document(event, start)
        elif isinstance(event, AliasEvent):
            self.refuse(start, f"*{event.anchor}", "aliases are not taken", "write the value out")
            self._add(Scalar("", True, start, event.end_mark.index))
        elif isinstance(event, ScalarEvent):
            self._properties(event, start)
            raw = self.source.text[start : event.end_mark.index]
            self._add(Scalar(event.value, event.style is None, start, event.end_mark.index, raw))
        elif isinstance(event, (MappingStartEvent, SequenceStartEvent)):
            self._properties(event, start)
            self.open.append(_Open(start, isinstance(event, MappingStartEvent)))
            if len(self.open) > MAX_DEPTH:
                raise SpecError(self.source.problem(start, "", f"nested more than {MAX_DEPTH} deep", _FLATTER))
        elif isinstance(event, (MappingEndEvent, SequenceEndEvent)):
            done = self.open.pop()
            end = event.end_mark.index
            self._add(self._mapping(done, end) if done.is_mapping else Sequence(tuple(done.values), done.start, end))

    def _document(self, event: DocumentStartEvent, start: int) -> None:
        self.documents += 1
        if self.documents > 1:
            raise SpecError(
                self.source.problem(start, "---", "a second document begins here", "write one operator per file")
            )
        if event.version not in (None, (1, 2)) or event.tags:
            self.refuse(start, "%", "directives are not taken: specs are YAML 1.2", "remove the line with %")

    def _properties(self, event: Any, start: int) -> None:
        if event.anchor is not None:
            self.refuse(start, f"&{event.anchor}", "anchors are not taken", "write the value out where it is needed")
        if event.tag is not None:
            self.refuse(start, str(event.tag), "tags are not taken: nothing is constructed", "remove the tag")

    def _add(self, node: Node) -> None:
        self.count += 1
        if self.count > MAX_NODES:
            raise SpecError(self.source.problem(node.start, "", f"more than {MAX_NODES} values", _TOO_LARGE))
        if self.open:
            self.open[-1].values.append(node)
        else:
            self.root = node

    def _mapping(self, done: _Open, end: int) -> Mapping:
        values: dict[str, Node] = {}
        keys: dict[str, Scalar] = {}
        for key, value in zip(done.values[::2], done.values[1::2], strict=True):
            if not isinstance(key, Scalar):
                self.refuse(key.start, "", "a key must be one word", "write `key: value`")
                continue
            if key.text in keys:
                line = self.source.location(keys[key.text].start).line
                reason = f"the key {key.text!r} is already given in line {line}"
                self.refuse(key.start, key.text, reason, "keep one of them")
                continue
            keys[key.text], values[key.text] = key, value
        return Mapping(values, keys, done.start, end)

    def refuse(self, position: int, text: str, reason: str, fix: str = "") -> None:
        self.findings.add(self.source.problem(position, text, reason, fix))
