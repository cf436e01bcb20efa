"""The shape of a spec and of a decay family: which keys there are and what kind of value each takes.

pydantic checks a whole document at once; `check_shape` turns what it finds into located problems.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from recgen.spec.document import Mapping, Node, Scalar, Sequence
from recgen.spec.source import Findings, Source, listing, near
from recgen.spec.values import AxesText, Exact, ExpressionText, Flag, Line, Range, word


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


def _short(key: str, *more: str) -> Any:
    """Lets one value stand for a mapping: `normalizer: sum` for `normalizer: {kind: sum}`."""

    def expand(node: Any) -> Any:
        return dict.fromkeys((key, *more), node) if isinstance(node, Scalar) else node

    return BeforeValidator(expand)


DecayTypeWord = word("none", "fixed", "learned", "gated")
PerWord = word("head", "key", "value", "key_value", "channel")


class ParamShape(_Shape):
    axes: AxesText
    init: ExpressionText | None = None
    buffer: Flag = False


class DecayShape(_Shape):
    type: DecayTypeWord | None = None
    per: PerWord | None = None
    log: ExpressionText | None = None
    value: ExpressionText | None = None
    bounds: Range | None = None
    family: Line | None = None
    constants: dict[str, Exact] = Field(default_factory=dict)


class FeatureShape(_Shape):
    query: ExpressionText | None = None
    key: ExpressionText | None = None


class WeightShape(_Shape):
    value: ExpressionText | None = None
    log: ExpressionText | None = None


class NormalizerShape(_Shape):
    kind: word("none", "sum", "max_abs", "abs_sum")  # type: ignore[valid-type]
    eps: Exact | None = None
    floor: Exact | None = None


class ReadoutShape(_Shape):
    kind: word("inclusive", "exclusive") = "inclusive"  # type: ignore[valid-type]
    bonus: ExpressionText | None = None
    skip: Line | None = None
    gate: ExpressionText | None = None


class SpecShape(_Shape):
    name: Line
    title: Line = ""
    cite: Line = ""
    inputs: dict[str, AxesText] = Field(default_factory=dict)
    params: dict[str, ParamShape] = Field(default_factory=dict)
    decay: DecayShape = DecayShape()
    query: ExpressionText | None = None
    key: ExpressionText | None = None
    value: ExpressionText | None = None
    feature_map: Annotated[FeatureShape, _short("query", "key")] = FeatureShape()
    key_weight: Annotated[WeightShape, _short("value")] = WeightShape()
    normalizer: Annotated[NormalizerShape, _short("kind")] = NormalizerShape.model_construct(kind="none")
    readout: Annotated[ReadoutShape, _short("kind")] = ReadoutShape()
    rotation: ExpressionText | None = None
    causal: Flag = True
    state: word("matrix", "vector") = "matrix"  # type: ignore[valid-type]
    scale: ExpressionText | None = None
    bounds: Range | None = None


class FamilyShape(_Shape):
    """A decay family: what `decay` holds, and the inputs and parameters that it brings along."""

    name: Line
    doc: Line = ""
    cite: Line = ""
    type: DecayTypeWord  # type: ignore[valid-type]
    per: PerWord = "head"  # type: ignore[valid-type]
    inputs: dict[str, AxesText] = Field(default_factory=dict)
    params: dict[str, ParamShape] = Field(default_factory=dict)
    constants: dict[str, Exact] = Field(default_factory=dict)
    log: ExpressionText | None = None
    value: ExpressionText | None = None
    bounds: Range | None = None


ShapeT = TypeVar("ShapeT", bound=_Shape)

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


def _problem(detail: ErrorDetails, root: Mapping, shape: type[_Shape], source: Source) -> Any:
    path = [part for part in detail["loc"] if isinstance(part, (str, int))]
    if detail["type"] == "extra_forbidden":
        parent, _ = _find(root, path[:-1])
        assert isinstance(parent, Mapping)
        key = parent.keys[str(path[-1])]
        known = _keys_at(shape, path[:-1])
        close = near(str(path[-1]), known)
        elsewhere = _ELSEWHERE.get(key.text, f"the keys here are {listing(known, 'and')}")
        if key.text.count(")") > key.text.count("("):
            elsewhere = "inside { } a comma ends the value: put the expression in quotes"
        fix = f"did you mean {close}?" if close else elsewhere
        return source.problem(key.start, key.text, f"there is no key {key.text[:40]!r} here", fix)
    node, start = _find(root, path)
    text = source.text[node.start : node.end].strip() if isinstance(node, Scalar) else ""
    if detail["type"] == "missing":
        key, fix = str(path[-1]), f"add `{path[-1]}: …`"
        return source.problem(start, "", f"the key {key!r} is missing", fix)
    if detail["type"] == "refused":
        context = detail["ctx"]
        return source.problem(start, text, context["reason"], context["fix"])
    keys = _keys_at(shape, path)
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


def _keys_at(shape: type[_Shape], path: list[str | int]) -> list[str]:
    """The keys that the mapping at a path may have; none where the names are the author's own."""
    current: Any = shape
    for part in path:
        if isinstance(current, type) and issubclass(current, _Shape):
            current = current.model_fields[str(part)].annotation if str(part) in current.model_fields else None
        elif current == dict[str, ParamShape]:
            current = ParamShape
        else:
            return []
    return list(current.model_fields) if isinstance(current, type) and issubclass(current, _Shape) else []
