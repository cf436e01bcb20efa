"""Decay families: reusable parametrisations with a name, built in or the user's own.

A family is a YAML file (see recgen/families/) or a `Family` object with the same content. A spec names it with
`decay: {family: NAME}`; NAME may also be the path of a file, relative to the spec. Names are looked up among registered
objects, then in the folders a caller passes, then in those of the environment variable RECGEN_FAMILIES, then among the
built-in ones; a name that two of them define is refused, because nothing says which is meant.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from recgen.errors import shortened
from recgen.resources import families_dir
from recgen.spec.context import Context
from recgen.spec.decay import DecayParts, read_decay
from recgen.spec.document import MAX_BYTES, decode, parse_document
from recgen.spec.expression import number_node
from recgen.spec.growth import check_growth
from recgen.spec.model import Decay, Tensor
from recgen.spec.names import refuse_operator_name, refuse_tensor_name
from recgen.spec.shape import FamilyShape, check_shape
from recgen.spec.source import Source, listing, suggestion
from recgen.spec.tensors import read_inputs, read_params
from recgen.spec.write import to_yaml

ENVIRONMENT = "RECGEN_FAMILIES"


@dataclass(frozen=True)
class Family:
    """A decay family, as its YAML file would say it.

    inputs: name → axes. params: name → {"axes": …, "init": …}. constants: name → number that a spec may change.
    Exactly one of `log` and `value` is given, in the expression language.
    """

    name: str
    type: str
    log: str | None = None
    value: str | None = None
    per: str = "head"
    inputs: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    constants: Mapping[str, float | int | str] = field(default_factory=dict)
    bounds: Sequence[float] | None = None
    doc: str = ""
    cite: str = ""

    def to_yaml(self) -> str:
        """The text of the family's file."""
        content = {key: getattr(self, key) for key in self.__dataclass_fields__}
        return to_yaml({key: value for key, value in content.items() if value not in (None, "", {}, ())})

    def __str__(self) -> str:
        expression = f"log = {self.log}" if self.log is not None else f"value = {self.value}"
        return f"{self.type} per {self.per}, {expression}" + (f". {self.doc}" if self.doc else "")


@dataclass(frozen=True)
class FamilyReading:
    """A family that was read for one spec: what it brings along, and its decay with the spec's constants."""

    inputs: tuple[Tensor, ...]
    params: tuple[Tensor, ...]
    decay: Decay


_registered: dict[str, Family] = {}


def register_family(family: Family) -> Family:
    """Makes a family known by its name, for this process; registering the same one again changes nothing.

    Raises TypeError for anything but a Family, SpecError when it is wrong, ValueError when its name already means
    another family.
    """
    if not isinstance(family, Family):
        raise TypeError(f"a recgen.Family is needed, not {type(family).__name__}")
    known = _registered.get(family.name)
    if known is not None and known != family:
        raise ValueError(f"a different family called {family.name!r} is registered already")
    if known is None and (families_dir() / f"{family.name}.yaml").is_file():
        raise ValueError(f"{family.name!r} is a built-in family; give yours another name")
    read_family(_source_of(family))
    _registered[family.name] = family
    return family


def unregister_family(name: str) -> None:
    """Forgets a registered family. Raises KeyError when there is none of that name."""
    del _registered[name]


def load_families(extra_dirs: Iterable[str | os.PathLike[str]] = ()) -> dict[str, Family]:
    """Every family that a spec can name, by name. Raises SpecError when one of the files is wrong."""
    found: dict[str, Family] = {}
    for folder in reversed(_folders(extra_dirs)):
        for path in sorted(folder.glob("*.yaml")):
            if path.is_file():
                found[path.stem] = _family(_open(path), path.stem)
    return dict(sorted((found | _registered).items()))


def named_family(name: str) -> Family | None:
    """The family that a spec can name so, None when there is none. Raises SpecError when its file is wrong."""
    found = find_family(name, Path()) if not is_path(name) else ""
    return None if isinstance(found, str) else _family(found, name)


def is_path(name: str) -> bool:
    """Whether a family is named by its file, not by a name to look up."""
    return "/" in name or "\\" in name or name.endswith((".yaml", ".yml"))


def _is_below(name: str) -> bool:
    """Whether a path stays in the folder that it starts from, on any system: a spec reads no other files."""
    parts = [*PurePosixPath(name).parts, *PureWindowsPath(name).parts]
    return ".." not in parts and not name.startswith("/") and not PureWindowsPath(name).anchor


def find_family(name: str, beside: Path, extra_dirs: Iterable[str | os.PathLike[str]] = ()) -> Source | str:
    """The text of the family that a spec in the folder `beside` calls `name`, or the reason why there is none.

    The reason has a fix after a newline. Raises SpecError when the file is no text.
    """
    if is_path(name):
        if not _is_below(name):
            return (
                f"the path {shortened(name, 60)} leads out of the spec's folder\n"
                f"keep the file beside the spec, or put its folder into {ENVIRONMENT} and give its name alone"
            )
        path = beside / name
        missing = f"there is no file {shortened(name, 60)} beside the spec\nwrite a path relative to the spec's folder"
        return _open(path) if path.is_file() else missing
    folders = _folders(extra_dirs)
    places = [f"{name}, which is registered"] if name in _registered else []
    files = [folder / f"{name}.yaml" for folder in folders] if not refuse_operator_name(name) else []
    files = list(dict.fromkeys(path for path in files if path.is_file()))
    places += [str(path) for path in files]
    if len(places) > 1:
        return f"{name} names several families: {listing(places, 'and')}\nrename one, or give the path of its file"
    if name in _registered:
        return _source_of(_registered[name])
    if files:
        return _open(files[0])
    known = {path.stem for folder in folders for path in folder.glob("*.yaml")} | set(_registered)
    fix = suggestion(name, known, f"the families are {listing(sorted(known), 'and')}")
    return f"there is no decay family {name[:40]!r}\n{fix}"


def read_family(
    source: Source,
    constants: Mapping[str, Fraction] | None = None,
    bounds: tuple[float, float] | None = None,
    called: str | None = None,
) -> FamilyReading:
    """The family in a text, with some of its constants and its bounds changed by a spec.

    called: the name that it was looked up by, None when it was given as a file.
    Raises SpecError, located in the family's own text. A constant that it does not have is the caller's to refuse.
    """
    context, shape = _shape(source)
    if called is not None and called != shape.name:
        reason = f"this family is looked up as {called}, by its file's name"
        context.refuse_at(("name",), reason, f"write name: {called}, or rename the file")
    refused = refuse_operator_name(shape.name)
    if refused:
        context.refuse_at(("name",), *refused)
    inputs, params = read_inputs(context, shape.inputs), read_params(context, shape.params)
    tensors = {tensor.name: tensor for tensor in (*inputs, *params)}
    for name in shape.constants:
        unfit = refuse_tensor_name(name) or (("declared twice", "rename the constant") if name in tensors else None)
        if unfit:
            context.refuse(context.key_position("constants", name), name, *unfit)
    for name in set(shape.inputs) & set(shape.params):
        context.refuse(context.key_position("params", name), name, f"{name} is an input already", "rename one")
    values = shape.constants | dict(constants or {})
    numbers = {name: number_node(_decimal(value), value) for name, value in values.items()}
    parts = DecayParts(shape.type, shape.per, shape.log, shape.value, bounds or shape.bounds, (), numbers)
    decay = read_decay(context, parts, tensors)
    if decay is not None:
        check_growth(context, ("value" if shape.log is None else "log",), decay, tensors)
        used = {symbol.name for symbol in decay.log.tree.free_symbols}
        for name, tensor in tensors.items():
            if name not in used:
                position = context.key_position("inputs" if tensor.role == "input" else "params", name)
                context.refuse(position, name, f"nothing in the decay depends on {name}", "remove it")
    context.findings.raise_if_any()
    assert decay is not None
    named = Decay(decay.type, decay.per, decay.log, decay.bounds, shape.name)
    return FamilyReading(tuple(inputs), tuple(params), named)


def family_constants(source: Source) -> list[str]:
    """The names of a family's constants. Raises SpecError."""
    return list(_shape(source)[1].constants)


def _decimal(value: Fraction) -> str:
    """The number as an exact decimal; it was read from one."""
    if value.denominator == 1 and abs(value) < 10**12:
        return str(value.numerator)
    with localcontext(prec=700):
        return str((Decimal(value.numerator) / Decimal(value.denominator)).normalize())


def _shape(source: Source) -> tuple[Context, FamilyShape]:
    context = Context(source, parse_document(source))
    shape = check_shape(context.root, FamilyShape, source, context.findings)
    context.findings.raise_if_any()
    assert shape is not None
    return context, shape


def _family(source: Source, name: str) -> Family:
    read_family(source, called=name)
    _, shape = _shape(source)
    return Family(
        name=shape.name,
        type=shape.type,
        log=shape.log.text if shape.log else None,
        value=shape.value.text if shape.value else None,
        per=shape.per,
        inputs={name: " ".join(axes.letters) for name, axes in shape.inputs.items()},
        params={
            name: {"axes": " ".join(param.axes.letters), "init": param.init.text if param.init else ""}
            | ({"buffer": True} if param.buffer else {})
            for name, param in shape.params.items()
        },
        constants={name: _decimal(value) for name, value in shape.constants.items()},
        bounds=shape.bounds,
        doc=shape.doc,
        cite=shape.cite,
    )


def _source_of(family: Family) -> Source:
    return Source(f"<family {family.name}>", family.to_yaml())


def _open(path: Path) -> Source:
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    return Source(str(path), decode(data, str(path)))


def _folders(extra_dirs: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """The folders to look in, the most specific first."""
    environment = [part for part in os.environ.get(ENVIRONMENT, "").split(os.pathsep) if part]
    return [Path(folder) for folder in (*extra_dirs, *environment)] + [families_dir()]
