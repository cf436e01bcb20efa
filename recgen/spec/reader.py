"""YAML text → Spec. Everything that is wrong with a spec is found before the first error is raised."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from recgen.errors import NOWHERE, Location, SpecError, shortened
from recgen.spec.arguments import read_arguments
from recgen.spec.context import Context
from recgen.spec.decay import DecayParts, read_decay
from recgen.spec.document import MAX_BYTES, Scalar, decode, parse_document
from recgen.spec.families import FamilyReading, family_constants, find_family, is_path, read_family
from recgen.spec.growth import check_growth
from recgen.spec.model import DEFAULT_ROLES, FEATURE, Decay, Expr, Normalizer, Spec, Tensor
from recgen.spec.names import refuse_operator_name
from recgen.spec.roles import (
    IDENTITY,
    ONE,
    default_role,
    read_feature_map,
    read_key_weight,
    read_readout,
    read_role,
    read_rotation,
    read_scale,
)
from recgen.spec.shape import SpecShape, check_shape
from recgen.spec.source import Source, listing, near
from recgen.spec.together import (
    check_features,
    check_gradients,
    check_log_weight,
    check_normalizer,
    check_together,
    check_used,
)
from recgen.spec.write import to_yaml

Folders = Iterable[str | os.PathLike[str]]

_SMALLEST_EPS = 1e-37
_LARGEST_FLOOR = 1e37


def read(path: str | os.PathLike[str], *, families: Folders = ()) -> Spec:
    """The spec in a file. `families`: folders with decay families, beside the built-in ones.

    Raises SpecError with every problem of the file, a missing or unreadable file among them.
    """
    path = Path(path)
    try:
        if not path.is_file():
            raise SpecError(Source(str(path), "").problem(0, "", *what_is_there(path)))
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise SpecError(Source(str(path), "").problem(0, "", f"the file cannot be read: {error}")) from None
    return _Reader(Source(str(path), decode(data, str(path))), path.parent, families).spec()


def read_text(text: str, filename: str = "<spec>", *, families: Folders = ()) -> Spec:
    """The spec in a text. `filename` is what errors call it; family paths are relative to its folder.

    Raises SpecError with every problem of the text.
    """
    return _Reader(Source(filename, text), Path(filename).parent, families).spec()


def read_dict(content: Mapping[str, Any], *, families: Folders = ()) -> Spec:
    """The spec in plain data, as `Spec.as_dict` gives it. Errors are located in the YAML text of the same content.

    Raises SpecError with every problem, TypeError for values that YAML does not have.
    """
    return read_text(to_yaml(content), "<dict>", families=families)


def what_is_there(path: Path) -> tuple[str, str]:
    """(reason, fix) where there is no file to read at a path."""
    fix = "give the path of a YAML file"
    if path.exists():
        return f"this is a {'folder' if path.is_dir() else 'device or pipe'}, not a file", fix
    folder = path.parent
    if not folder.is_dir():
        return f"there is no folder {shortened(str(folder))}", fix
    there = {entry.stem: entry for ending in ("yml", "yaml") for entry in folder.glob(f"*.{ending}")}
    close = near(path.stem, there, cutoff=0.7)
    return "there is no such file", f"did you mean {there[close]}?" if close else fix


def _placed(expr: Expr, here: Location) -> Expr:
    """The expression; a default one, which is written nowhere, is placed at the start of the spec."""
    return replace(expr, at=here) if expr.at is NOWHERE else expr


class _Reader:
    """One spec being read."""

    def __init__(self, source: Source, folder: Path, families: Folders) -> None:
        self.context = Context(source, parse_document(source))
        self.folder = folder
        self.families = tuple(families)

    def spec(self) -> Spec:
        context, findings = self.context, self.context.findings
        shape = check_shape(context.root, SpecShape, context.source, findings)
        findings.raise_if_any()
        assert shape is not None
        refused = refuse_operator_name(shape.name)
        if refused:
            context.refuse_at(("name",), *refused)
        family = self._family(shape)
        inputs, params = read_arguments(context, shape, family)
        tensors = {tensor.name: tensor for tensor in (*inputs, *params)}
        decay = family.decay if family else self._decay(shape, tensors) if shape.decay.family is None else None
        roles = {role: self._role(role, shape, tensors, decay) for role in DEFAULT_ROLES}
        query_map, key_map = (self._feature_map(side, shape, tensors) for side in ("query", "key"))
        weight, is_log = read_key_weight(context, shape, tensors, decay)
        readout = read_readout(context, shape.readout, tensors, shape.state, decay)
        rotation = read_rotation(context, shape.rotation, tensors) if shape.rotation else None
        scale = read_scale(context, shape.scale, tensors, shape.state) if shape.scale else ONE
        normalizer = self._normalizer(shape)
        expressions = [*roles.values(), weight, readout.bonus, readout.gate, rotation, scale]
        expressions.append(decay.log if decay else None)
        maps = {s for expr in (query_map, key_map) if expr for s in expr.tree.free_symbols}
        check_together(context, shape, tensors, decay)
        check_normalizer(context, shape, tensors, decay, weight)
        check_log_weight(context, shape, tensors, weight if is_log else None, readout)
        findings.raise_if_any()
        named = {readout.skip} if readout.skip is not None else set()
        check_used(context, tensors, [expr for expr in expressions if expr], named | {s.name for s in maps - {FEATURE}})
        findings.raise_if_any()
        assert decay is not None and scale is not None and query_map is not None and key_map is not None
        if shape.state == "matrix":
            beside = {("decay",): decay.log, ("key_weight",): weight, ("readout", "bonus"): readout.bonus}
            check_features(context, tensors, query_map, key_map, beside)
        smooth = (roles["value"], weight, readout.bonus, readout.gate, rotation, decay.log)
        others = [expr for expr in smooth if expr]
        check_gradients(context, tensors, others, [(roles["query"], query_map), (roles["key"], key_map)], named)
        findings.raise_if_any()
        here = context.source.location(context.root.start)
        return Spec.of_parts(
            name=shape.name,
            title=shape.title,
            cite=shape.cite,
            license=shape.license,
            decay=replace(decay, log=_placed(decay.log, here)),
            inputs=tuple(inputs),
            params=tuple(params),
            query=_placed(roles["query"], here),
            key=_placed(roles["key"], here),
            value=_placed(roles["value"], here),
            query_map=_placed(query_map, here),
            key_map=_placed(key_map, here),
            key_weight=_placed(weight, here),
            log_key_weight=is_log,
            normalizer=normalizer,
            readout=readout,
            rotation=rotation,
            causal=shape.causal,
            state=shape.state,
            scale=_placed(scale, here),
            source=context.source.text,
            path=context.source.file,
        )

    def _family(self, shape: SpecShape) -> FamilyReading | None:
        """The family that the decay names, with the spec's constants and bounds."""
        context, decay = self.context, shape.decay
        if decay.family is None:
            for name in decay.constants:
                position = context.key_position("decay", "constants", name)
                context.refuse(position, name, "constants belong to a family", "write the number into the expression")
            return None
        for key in ("type", "per", "log", "value"):
            if getattr(decay, key) is not None:
                reason = f"{key} comes from the family {decay.family}"
                context.refuse(context.key_position("decay", key), key, reason, f"remove {key}, or the family")
        try:
            found = find_family(decay.family, self.folder, self.families)
            if isinstance(found, str):
                context.refuse_at(("decay", "family"), *found.split("\n", 1))
                return None
            known = family_constants(found)
            for name in decay.constants:
                if name not in known:
                    position = context.key_position("decay", "constants", name)
                    fix = f"its constants are {listing(known, 'and')}" if known else "remove it: the family has none"
                    context.refuse(position, name, f"the family {decay.family} has no constant {name[:40]!r}", fix)
            constants = {name: value for name, value in decay.constants.items() if name in known}
            called = None if is_path(decay.family) else decay.family
            return read_family(found, constants, self._bounds(shape), called)
        except SpecError as error:
            context.findings.extend(error.problems)
        except OSError as error:
            context.refuse_at(("decay", "family"), f"the family cannot be read: {error.strerror}")
        return None

    def _bounds(self, shape: SpecShape) -> tuple[float, float] | None:
        if shape.bounds is not None and shape.decay.bounds is not None:
            self.context.refuse_at(("bounds",), "the bounds are given here and in the decay", "keep one of them")
        return shape.decay.bounds or shape.bounds

    def _decay(self, shape: SpecShape, tensors: Mapping[str, Tensor]) -> Decay | None:
        context, decay = self.context, shape.decay
        bounds = self._bounds(shape)
        if decay.type is None and context.node("decay") is not None:
            position = context.key_position("decay")
            reason, fix = "the decay has no type", "add type: fixed, learned or gated, or name a family"
            context.refuse(position, "decay", reason, fix)
            return None
        if decay.type in (None, "none"):
            for path in (("decay", "per"), ("decay", "bounds"), ("bounds",)):
                if context.node(*path) is not None:
                    reason = f"without a decay, {path[-1]} means nothing"
                    context.refuse(context.key_position(*path), path[-1], reason, "remove it, or give the decay a type")
        parts = DecayParts(decay.type or "none", decay.per or "head", decay.log, decay.value, bounds, ("decay",))
        read = read_decay(context, parts, tensors)
        if read is not None and read.type != "none":
            check_growth(context, ("decay", "log" if decay.value is None else "value"), read, tensors)
        return read

    def _role(self, role: str, shape: SpecShape, tensors: Mapping[str, Tensor], decay: Decay | None) -> Expr:
        """query, key or value; the default one also where the written one is wrong, which is noted."""
        scalar = getattr(shape, role)
        default = default_role(role, shape.state)
        if scalar is not None:
            return read_role(self.context, role, scalar, tensors, shape.state, decay) or default
        expected = {"query": "B T H K", "key": "B T H K", "value": "B T D" if shape.state == "vector" else "B T H V"}
        tensor = tensors.get(default.text)
        if tensor is not None and tensor.layout != expected[role]:
            group = "inputs" if tensor.role == "input" else "params"
            reason = f"{tensor.name} is the {role}, with the axes {expected[role]}"
            fix = f"write {expected[role]}, or state another {role}: "
            self.context.refuse_at((group, tensor.name), reason, fix + f"`{role}: …`")
        return default

    def _feature_map(self, side: str, shape: SpecShape, tensors: Mapping[str, Tensor]) -> Expr | None:
        scalar = getattr(shape.feature_map, side)
        if scalar is None:
            return IDENTITY
        both = isinstance(self.context.node("feature_map"), Scalar)
        return read_feature_map(self.context, ("feature_map",) if both else ("feature_map", side), scalar, tensors)

    def _normalizer(self, shape: SpecShape) -> Normalizer:
        """The normalizer, with the one number that its kind takes."""
        kind, given = shape.normalizer.kind, {"eps": shape.normalizer.eps, "floor": shape.normalizer.floor}
        own = {"sum": "eps", "max_abs": "floor", "abs_sum": "floor"}.get(kind)
        for key in (key for key, value in given.items() if value is not None and key != own):
            fix = f"write {own}, or remove it" if own else "remove it"
            self.context.refuse_at(("normalizer", key), f"the normalizer {kind} has no {key}", fix)
        eps, floor = given["eps"], given["floor"]
        if kind == "sum" and eps not in (None, 0) and not _SMALLEST_EPS <= eps <= 1:
            reason = "eps keeps the denominator from being 0, so it is above 0 and at most 1 in float32"
            self.context.refuse_at(("normalizer", "eps"), reason, "write eps: 1e-6")
        if kind in ("max_abs", "abs_sum") and floor is not None and not _SMALLEST_EPS <= floor <= _LARGEST_FLOOR:
            reason = "the floor keeps the denominator from being 0, so it is above 0, and a float32 number"
            self.context.refuse_at(("normalizer", "floor"), reason, "write floor: 1")
        if kind == "sum":
            return Normalizer(kind, eps=1e-6 if eps is None else float(eps))
        return Normalizer(kind, floor=1.0 if floor is None else float(floor))
