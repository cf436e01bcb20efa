"""Which argument of someone's function is which of the operator's: by what is said, by name, by known synonyms."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from recgen.spec.source import listing, suggestion

MAP = "--map"
SCALES = ("scale", "sm_scale", "softmax_scale")
PLAIN = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Refused(Exception):
    """What cannot be compared, and what to pass instead; `option` names where."""

    def __init__(self, message: str, option: str) -> None:
        super().__init__(message)
        self.option = option


@dataclass(frozen=True)
class Mapping:
    """Their argument → the operator's input or parameter; the argument that takes the scale, if one does; those that
    keep their default; and those that are given by position alone, in order."""

    pairs: dict[str, str]
    scale: str | None
    defaults: tuple[str, ...]
    positional: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = ", ".join(f"{theirs}={ours}" for theirs, ours in self.pairs.items())
        text += f", {self.scale}=the operator's scale" if self.scale else ""
        return text + (f"; left at their defaults: {', '.join(self.defaults)}" if self.defaults else "")


@cache
def synonyms() -> tuple[frozenset[str], ...]:
    """Groups of names, folded."""
    from ruamel.yaml import YAML

    groups = YAML(typ="safe").load(Path(__file__).with_name("synonyms.yaml").read_text(encoding="utf-8"))
    return tuple(frozenset(_folded(str(name)) for name in group) for group in groups)


def arguments(function: Callable[..., Any], ours: Sequence[str], said: Sequence[str]) -> Mapping:
    """The mapping of a function's arguments; `said` are texts THEIRS=OURS. Raises Refused with what to say."""
    takes = _taken(function)
    given = _given(takes, ours, said)
    left = [name for name in ours if name not in given.values()]
    open_ = {name: default for name, default in takes.items() if name not in given}
    for match in (_same, _same_but_case):
        for theirs in list(open_):
            found = [name for name in left if match(theirs, name)]
            if len(found) == 1:
                given[theirs] = found[0]
                left.remove(found[0])
                del open_[theirs]
    given |= _by_synonym(open_, left, takes)
    left = [name for name in left if name not in given.values()]
    open_ = {name: default for name, default in open_.items() if name not in given}
    scale = next((name for name in SCALES if name in open_), None)
    open_.pop(scale or "", None)
    missing = [name for name, has_default in open_.items() if not has_default]
    if missing or left:
        if said or any(len(theirs) > 1 or theirs.lower() == name.lower() for theirs, name in given.items()):
            raise Refused(_unmatched(given, missing, left, list(open_)), MAP)
        # No name of theirs tells more than one letter does: they are no names, and those found were found by chance.
        missing = [name for name, has_default in takes.items() if not has_default and name != scale]
        raise Refused(_unmatched({}, missing, list(ours), [name for name in takes if name != scale]), MAP)
    ordered = {name: given[name] for name in takes if name in given}
    parameters = inspect.signature(function).parameters
    positional = tuple(name for name in ordered if parameters[name].kind is inspect.Parameter.POSITIONAL_ONLY)
    return Mapping(ordered, scale, tuple(open_), positional)


def _taken(function: Callable[..., Any]) -> dict[str, bool]:
    """The names of a function's arguments, and whether each has a default."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        raise Refused(
            "the arguments of this function cannot be read off it; wrap it in one that names them", "--against"
        ) from None
    plain = {name: p.default is not p.empty for name, p in parameters.items() if p.kind in PLAIN}
    if not plain:
        raise Refused("this function takes *arguments without names; wrap it in one that names them", "--against")
    return plain


def _given(takes: dict[str, bool], ours: Sequence[str], said: Sequence[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for text in said:
        theirs, equals, name = (part.strip() for part in text.partition("="))
        if not (theirs and equals and name):
            raise Refused(f"found {text!r}; write YOURS=OURS, for example {next(iter(takes))}={ours[0]}", MAP)
        for found, names, whose in ((theirs, takes, "your function takes"), (name, ours, "the operator takes")):
            if found not in names:
                reason = f"{text!r}: {whose} {listing(names, 'and')}, not {found!r}"
                raise Refused("; ".join(filter(None, (reason, suggestion(found, names)))), MAP)
        if name in given.values() or theirs in given:
            raise Refused(f"{text!r}: {name if name in given.values() else theirs!r} has been mapped already", MAP)
        given[theirs] = name
    return given


def _same(theirs: str, ours: str) -> bool:
    return theirs == ours


def _same_but_case(theirs: str, ours: str) -> bool:
    return theirs.lower() == ours.lower()


def _by_synonym(open_: dict[str, bool], left: list[str], takes: dict[str, bool]) -> dict[str, str]:
    """Matches that are the only one both ways; Refused for one that could be several."""
    fits = {theirs: [name for name in left if _synonymous(theirs, name)] for theirs in open_}
    found = {}
    for theirs, names in fits.items():
        rivals = [other for other, others in fits.items() if other != theirs and set(others) & set(names)]
        if len(names) == 1 and not rivals:
            found[theirs] = names[0]
        elif names and not takes[theirs]:
            candidates = [f"{MAP} {theirs}={name}" for name in names]
            others = [f"{MAP} {other}={name}" for other in rivals for name in fits[other] if name in names]
            raise Refused(f"{theirs!r} could be more than one: pass {listing(candidates + others, 'or')}", MAP)
    return found


def _synonymous(theirs: str, ours: str) -> bool:
    return any(_folded(theirs) in group and _folded(ours) in group for group in synonyms())


def _folded(name: str) -> str:
    """In lower case, but for single letters: b is a weight where B is a key."""
    return name.lower() if len(name) > 1 else name


def _unmatched(given: dict[str, str], missing: list[str], left: list[str], open_: list[str]) -> str:
    """What could not be matched, and the flag that would do it."""
    text = []
    if given:
        text.append("found " + ", ".join(f"{theirs}={ours}" for theirs, ours in given.items()))
    if left:
        text.append(f"the operator's {listing(left, 'and')} {_verb(left)} no match in your function")
    if missing:
        text.append(f"your {listing(missing, 'and')} {_verb(missing)} no match in the operator")
    if left and open_:
        flags = [f"{MAP} {theirs}={ours}" for theirs, ours in zip(missing or open_, left, strict=False)]
        text.append(("pass " if len(flags) == 1 else "say which is which, for example ") + " ".join(flags))
    else:
        text.append("wrap your function in one that takes what the operator takes")
    return "; ".join(text)


def _verb(names: list[str]) -> str:
    return "has" if len(names) == 1 else "have"
