"""The state that someone's function returns, against the operator's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from .errors import Measure, relative_error
from .profile import Profile

SAME_UNIT = 1e-5  # how far apart positions and running maxima may be for the other parts to mean the same


def compare_states(
    profile: Profile, ours: tuple[Tensor, ...] | None, theirs: Any, allowed: float
) -> tuple[list[Measure], str]:
    """The error of every part of the state; or none, and why the states cannot be compared.

    The last two axes of a part may be the other way round. A running maximum is the unit of the other parts, and a
    position tells what they are turned by: where theirs is another, the parts mean something else."""
    if not ours or theirs is None:
        return [], ""
    parts = _parts(tuple(profile.state), theirs)
    if parts is None:
        whole = f"({', '.join(profile.state)})" if len(ours) > 1 else f"the tensor {next(iter(profile.state))}"
        return [], f"your state was not compared: it is {_kind(theirs)}, and the operator's is {whole}"
    placed = {}
    for (name, x), part in zip(parts.items(), ours, strict=True):
        same = [y for y in (x, x.mT if x.dim() > 1 else x) if y.shape == part.shape]
        if not same:
            shapes = f"{name} is {tuple(x.shape)}, the operator's {tuple(part.shape)}"
            return [], f"your state was not compared: its {shapes}"
        placed[name] = min(relative_error(y, part) for y in same)
    units = [name for name, smooth in zip(placed, profile.differentiable(), strict=True) if not smooth]
    other = [name for name in units if not placed[name] <= SAME_UNIT]
    if other:
        return [], f"your state was not compared: its {other[0]} is not the operator's, on which the others depend"
    allowed = max(allowed, SAME_UNIT) if units else allowed
    return [Measure(f"state {name}", error, allowed) for name, error in placed.items()], ""


def _parts(names: tuple[str, ...], theirs: Any) -> dict[str, Tensor] | None:
    """Their parts by the operator's names: by their own names where these are the same, else in order."""
    if isinstance(theirs, Tensor):
        found: list[Any] = [theirs]
    elif isinstance(theirs, Mapping):
        found = [theirs.get(name) for name in names] if len(theirs) == len(names) else []
    elif isinstance(theirs, tuple | list):
        fields = getattr(theirs, "_fields", ())
        found = [getattr(theirs, name) for name in names] if set(fields) == set(names) else list(theirs)
    else:
        found = []
    if len(found) != len(names) or not all(isinstance(x, Tensor) for x in found):
        return None
    return dict(zip(names, found, strict=True))


def _kind(theirs: Any) -> str:
    if isinstance(theirs, tuple | list):
        return f"{type(theirs).__name__} of {', '.join(type(x).__name__ for x in theirs) or 'nothing'}"
    return type(theirs).__name__
