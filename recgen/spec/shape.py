"""A document against the keys that it may have: pydantic checks it, and what it finds becomes located problems."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from recgen.spec.document import Mapping, Node, Scalar, Sequence
from recgen.spec.keys import DecayShape as DecayShape
from recgen.spec.keys import FamilyShape as FamilyShape
from recgen.spec.keys import FeatureShape as FeatureShape
from recgen.spec.keys import NormalizerShape as NormalizerShape
from recgen.spec.keys import ParamShape as ParamShape
from recgen.spec.keys import ReadoutShape as ReadoutShape
from recgen.spec.keys import Shape
from recgen.spec.keys import SpecShape as SpecShape
from recgen.spec.keys import WeightShape as WeightShape
from recgen.spec.source import Findings, Source, listing, suggestion

ShapeT = TypeVar("ShapeT", bound=Shape)

_ELSEWHERE: dict[str, str] = {
    "eps": "it belongs to normalizer: {kind: sum, eps: 1e-6}",
    "floor": "it belongs to normalizer: {kind: max_abs, floor: 1}",
    "type": "it belongs to decay",
    "per": "it belongs to decay",
    "log": "it belongs to decay",
    "family": "it belongs to decay",
    "gate": "it belongs to readout, or write an input and a decay",
    "bonus": "it belongs to readout",
    "skip": "it belongs to readout",
    "init": "it belongs to a parameter: params: {w: {axes: H, init: 0}}",
    "axes": "it belongs to a parameter: params: {w: {axes: H, init: 0}}",
    "buffers": "write the buffer under params, with `buffer: true`",
    "<<": "merge keys are not taken; write the values out",
}


def check_shape(root: Mapping, shape: type[ShapeT], source: Source, findings: Findings) -> ShapeT | None:
    """The document as typed values, or None after adding everything that is wrong with it to `findings`."""
    try:
        return shape.model_validate(_plain(root))
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            findings.add(_problem(detail, root, shape, source))
        return None


def _plain(node: Node) -> Any:
    """Mappings and lists as Python's own; single values stay nodes."""
    if isinstance(node, Mapping):
        return {key: _plain(value) for key, value in node.values.items()}
    if isinstance(node, Sequence):
        return [_plain(item) for item in node.items]
    return node


def _problem(detail: ErrorDetails, root: Mapping, shape: type[Shape], source: Source) -> Any:
    path = [part for part in detail["loc"] if isinstance(part, (str, int))]
    if detail["type"] == "extra_forbidden":
        parent, _ = _find(root, path[:-1])
        assert isinstance(parent, Mapping)
        key = parent.keys[str(path[-1])]
        known = keys_at(shape, path[:-1])
        fix = suggestion(str(path[-1]), known, f"the keys here are {listing(known, 'and')}")
        if key.text in _ELSEWHERE:
            fix = _ELSEWHERE[key.text]
        elif key.text.count(")") > key.text.count("("):
            fix = "inside { } a comma ends the value: put the expression in quotes"
        return source.problem(key.start, key.text, f"there is no key {key.text[:40]!r} here", fix)
    node, start = _find(root, path)
    text = source.text[node.start : node.end].strip() if isinstance(node, Scalar) else ""
    if detail["type"] == "missing":
        name, fix = str(path[-1]), f"add `{path[-1]}: {_example(shape, path)}`"
        return source.problem(start, "", f"the key {name!r} is missing", fix)
    if detail["type"] == "refused":
        context = detail["ctx"]
        if isinstance(node, Scalar) and not node.text and "#" in source.text[start:].split("\n", 1)[0]:
            fix = "a # after a space begins a comment: write the value before it, or put it in quotes"
            return source.problem(start, text, context["reason"], fix)
        return source.problem(start, text, context["reason"], context["fix"])
    keys = keys_at(shape, path)
    fix = f"write keys below it: {listing(keys)}" if keys else "write `name: value` lines below it"
    if not isinstance(node, Mapping):
        given = "a list" if isinstance(node, Sequence) else "one value"
        return source.problem(start, text, f"a mapping is needed here, this is {given}", fix)
    return source.problem(start, text, detail["msg"], fix)


def _find(root: Mapping, path: list[str | int]) -> tuple[Node, int]:
    """The node at a path, as deep as it goes, and the place to point at: for a missing key, its mapping's own key."""
    node: Node = root
    start = root.start
    for part in path:
        if isinstance(node, Mapping) and part in node.values:
            start, node = node.keys[str(part)].start, node.values[str(part)]
        elif isinstance(node, Sequence) and isinstance(part, int) and part < len(node.items):
            node = node.items[part]
        else:
            break
    if isinstance(node, Sequence) or (isinstance(node, Scalar) and node.raw):
        start = node.start
    return node, start


def keys_at(shape: type[Shape], path: list[str | int]) -> list[str]:
    """The keys that the mapping at a path may have; none where the names are the author's own."""
    current: Any = shape
    for part in path:
        current = _below(current, part)
    return list(current.model_fields) if isinstance(current, type) and issubclass(current, Shape) else []


def _below(current: Any, part: str | int) -> Any:
    """What stands under one key of a mapping of this kind, None where there is nothing or the kind is unknown."""
    if isinstance(current, type) and issubclass(current, Shape):
        return current.model_fields[str(part)].annotation if str(part) in current.model_fields else None
    return ParamShape if current == dict[str, ParamShape] else None


def _example(shape: type[Shape], path: list[str | int]) -> str:
    """A value that a missing key may have."""
    owner: Any = shape
    for part in path[:-1]:
        owner = _below(owner, part)
    return str(owner.model_fields[str(path[-1])].examples[0])
