"""The operator against an implementation of the user's own: output, state and gradients on the same inputs.

compare_with(module, "my_layer:gla", ["log_gate=g"], "bhtd", seed=0).render()
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from recgen.spec.source import suggestion

from .arguments import Mapping, Refused, arguments
from .errors import Measure, relative_error
from .profile import Profile, load_module
from .states import compare_states

__all__ = ["Comparison", "Refused", "compare_with"]

AGAINST = "--against"
EXPECTED = "MODULE:FUNCTION or FILE.py:FUNCTION, for example my_layer:attention or ../my_layer.py:attention"
SHAPES = ({"B": 2, "T": 37, "H": 3, "K": 8, "V": 6}, {"B": 2, "T": 64, "H": 4, "K": 16, "V": 16})
ALLOWED = {torch.float64: (1e-9, 1e-8), torch.float32: (1e-4, 5e-4)}
ROUNDING = 1e-4  # an error below this in float64 may be one of numbers that were float32 in between


@dataclass
class Comparison:
    """What was found: how arguments were matched, the errors, and what they look like."""

    operator: str
    target: str
    mapping: Mapping
    dtype: str = ""
    sizes: dict[str, int] = field(default_factory=dict)
    measures: list[Measure] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    examples: int = 1

    def merge(self, other: Comparison | None) -> None:
        """Take in what was found on another draw of the same sizes: of every result the worst."""
        if other is None:
            return
        self.examples += other.examples
        errors = {m.name: m for m in other.measures}
        self.measures = [max(m, errors.pop(m.name, m), key=lambda one: one.ratio) for m in self.measures]
        self.measures += errors.values()
        self.problems = list(dict.fromkeys(self.problems + other.problems))
        self.notes = list(dict.fromkeys(self.notes + other.notes))

    @property
    def ok(self) -> bool:
        """Everything that was compared is equal, and something was."""
        return bool(self.measures) and not self.problems and all(m.ok for m in self.measures)

    def as_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        return asdict(self) | {"ok": self.ok}

    def render(self) -> str:
        """The mapping, a line per result, and the verdict."""
        lines = [f"{self.operator} against {self.target}", f"arguments: {self.mapping}"]
        if self.measures:
            sizes = ", ".join(f"{name}={size}" for name, size in self.sizes.items())
            times = f", the worst of {self.examples} draws" if self.examples > 1 else ""
            lines.append(f"in {self.dtype}, at {sizes}{times}:")
        wide = max((len(m.name) for m in self.measures), default=0)
        for m in self.measures:
            verdict = "equal" if m.ok else "DIFFERS"
            lines.append(f"  {m.name:{wide}}  relative error {m.error:.1e}, allowed {m.allowed:.0e}  {verdict}")
        lines += [f"FAILED: {problem}" for problem in self.problems]
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join([*lines, "", f"{self.operator}: {'the same operator' if self.ok else 'not the same'}"])


def compare_with(
    module: ModuleType, target: str, said: Sequence[str], layout: str, seed: int, examples: int = 1
) -> Comparison:
    """Compare an emitted module's operator with `target`, MODULE:FUNCTION or FILE.py:FUNCTION.

    `said` are texts THEIRS=OURS for arguments that names do not tell; `layout` is bthd or bhtd. Of several
    `examples`, drawn one after the other, the worst is kept. Raises Refused where there is nothing to compare, with
    what to pass instead."""
    function = found(target)
    profile = Profile.of(module)
    mapping = arguments(function, [*profile.inputs, *profile.params], said)
    raised: list[str] = []

    def attempt(dtype: torch.dtype, sizes: dict[str, int], seed: int) -> Comparison | None:
        """What is found on one draw of inputs; None where their function raises."""
        comparison = Comparison(module.SPEC["name"], target, mapping)
        theirs = _Theirs(function, mapping, profile, layout, sizes)
        try:
            _compare(comparison, theirs, profile.sample(**sizes, dtype=dtype, seed=seed), dtype, sizes)
        except Refused:
            raise
        except (Exception, SystemExit) as error:
            raised.append(f"{dtype}, {sizes}: {_where(error)}".replace("torch.", "", 1))
            return None
        return comparison

    for dtype, sizes in product((torch.float64, torch.float32), SHAPES):
        comparison = attempt(dtype, sizes, seed)
        if comparison is not None:
            for further in range(1, examples):
                comparison.merge(attempt(dtype, sizes, seed + further))
            if raised:
                comparison.notes.append(f"your function raised for other inputs: {raised[0]}")
            return comparison
    comparison = Comparison(module.SPEC["name"], target, mapping)
    comparison.problems.append(f"your function raised {raised[0]}")
    comparison.notes.append(f"tensors were given as {layout}; --layout {_other(layout)} swaps heads and time")
    return comparison


def found(target: str) -> Callable[..., Any]:
    """The function that MODULE:FUNCTION names, the module from the current folder or wherever Python finds it."""
    name, colon, path = target.partition(":")
    if not (name and colon and path):
        raise Refused(f"found {target!r}; write {EXPECTED}", AGAINST)
    if not name.endswith(".py") and not all(part.isidentifier() for part in name.split(".")):
        file = f"; is it {name}.py:{path}?" if Path(f"{name}.py").is_file() else ""
        raise Refused(f"found {name!r}, which is neither a module nor a .py file; write {EXPECTED}{file}", AGAINST)
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        value: Any = load_module(name) if name.endswith(".py") else importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise Refused(f"{name} cannot be imported: {_where(error)}", AGAINST) from None
    for part in path.split("."):
        if not hasattr(value, part):
            fix = suggestion(part, [known for known in dir(value) if not known.startswith("_")])
            raise Refused("; ".join(filter(None, (f"{name} has no {path}", fix))), AGAINST)
        value = getattr(value, part)
    if not callable(value):
        raise Refused(f"{target} is not a function but {type(value).__name__}", AGAINST)
    return value  # type: ignore[no-any-return]


@dataclass(frozen=True)
class _Theirs:
    """Their function, called with the operator's inputs; what it returns, in the operator's layout."""

    function: Callable[..., Any]
    mapping: Mapping
    profile: Profile
    layout: str
    sizes: dict[str, int]

    def __call__(self, inputs: dict[str, Tensor]) -> tuple[Tensor, Any]:
        given: dict[str, Any] = {
            theirs: self._placed(ours, inputs[ours]) for theirs, ours in self.mapping.pairs.items()
        }
        if self.mapping.scale:
            given[self.mapping.scale] = self.profile.scale(*(self.sizes[axis] for axis in "HKV"))
        first = [given.pop(name) for name in self.mapping.positional]
        result = self.function(*first, **given)
        o, state = result, None
        if isinstance(result, tuple | list) and result:
            o, state = result[0], result[1] if len(result) > 1 else None
        if not isinstance(o, Tensor):
            raise Refused(f"your function returned {type(o).__name__}; return the output, or (output, state)", AGAINST)
        return (o.transpose(1, 2) if self._swaps and o.dim() > 2 else o), state

    @property
    def _swaps(self) -> bool:
        return self.layout == "bhtd" and any("H" in axes for axes in self.profile.inputs.values())

    def _placed(self, name: str, x: Tensor) -> Tensor:
        return x.transpose(1, 2) if self._swaps and self.profile.axes(name)[1:3] == ("T", "H") else x


def _compare(
    comparison: Comparison, theirs: _Theirs, inputs: dict[str, Tensor], dtype: torch.dtype, sizes: dict[str, int]
) -> None:
    """Fill in the comparison. What their function raises passes through."""
    profile = theirs.profile
    options = {"output_final_state": True} if profile.state else {}
    leaves = {name: x.requires_grad_() for name, x in inputs.items()}
    o, state = profile.module.operator(**leaves, backend="torch", **options)
    o_theirs, state_theirs = theirs(leaves)
    comparison.dtype, comparison.sizes = str(dtype).removeprefix("torch."), dict(sizes)
    if o.shape != o_theirs.shape:
        comparison.problems.append(_shapes(theirs, o, o_theirs))
        return
    if dtype is torch.float64 and o_theirs.dtype is not dtype:
        comparison.notes.append(f"your output is {o_theirs.dtype} for float64 inputs")
        dtype = torch.float32
    values, gradients = ALLOWED[dtype]
    comparison.measures.append(Measure("output", relative_error(o_theirs, o), values))
    measures, why_not = compare_states(profile, state, state_theirs, values)
    comparison.measures += measures
    comparison.notes += [why_not] * bool(why_not)
    if o_theirs.requires_grad:
        cotangent = torch.randn(o.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        ours = torch.autograd.grad(o, list(leaves.values()), cotangent.to(o.dtype), allow_unused=True)
        found = torch.autograd.grad(o_theirs, list(leaves.values()), cotangent.to(o_theirs.dtype), allow_unused=True)
        for (name, x), mine, yours in zip(leaves.items(), ours, found, strict=True):
            pair = [torch.zeros_like(x) if d is None else d for d in (yours, mine)]
            comparison.measures.append(Measure(f"gradient {name}", relative_error(*pair), gradients))
    else:
        comparison.notes.append("your output has no gradient: values alone were compared")
    if not comparison.ok:
        comparison.notes += _looks_like(comparison, theirs, leaves, o.detach(), o_theirs.detach().to(o.dtype), dtype)


def _shapes(theirs: _Theirs, o: Tensor, o_theirs: Tensor) -> str:
    text = f"your output is {tuple(o_theirs.shape)}, the operator's {tuple(o.shape)} as bthd"
    if o_theirs.dim() > 2 and o_theirs.transpose(1, 2).shape == o.shape:
        text += f"; with --layout {_other(theirs.layout)} heads and time would be swapped"
    return text


def _other(layout: str) -> str:
    return "bhtd" if layout == "bthd" else "bthd"


def _agrees_otherwise(theirs: _Theirs, inputs: dict[str, Tensor], o: Tensor, allowed: float) -> bool:
    """Whether their output is the operator's where heads and time are given in the other order."""
    swapped = replace(theirs, layout=_other(theirs.layout))
    if swapped._swaps == theirs._swaps:
        return False
    try:
        found, _ = swapped({name: x.detach() for name, x in inputs.items()})
    except (Exception, SystemExit):  # what it makes of that order tells nothing then
        return False
    return relative_error(found, o) <= allowed


def _looks_like(
    comparison: Comparison,
    function: _Theirs,
    inputs: dict[str, Tensor],
    o: Tensor,
    theirs: Tensor,
    dtype: torch.dtype,
) -> list[str]:
    """What kind of difference it is, as far as numbers tell."""
    hints = []
    profile = function.profile
    if not theirs.isfinite().all():
        token = int((~theirs.isfinite()).transpose(0, 1).flatten(1).any(1).nonzero()[0])
        return [f"your output is not finite, first at token {token} of {o.shape[1]}"]
    worst = max((m.error for m in comparison.measures), default=0.0)
    if dtype is torch.float64 and worst < ROUNDING:
        return ["equal up to rounding: a part of yours is computed in float32, or a small constant differs"]
    output = comparison.measures[0]
    if output.ok:
        return ["the outputs are equal and gradients are not: a derivative of yours is not that of its forward pass"]
    if _agrees_otherwise(function, inputs, o, output.allowed):
        return [
            f"with heads and time in the other order the outputs are equal: pass --layout {_other(function.layout)}"
        ]
    ratio = float((theirs * o).sum() / (o * o).sum())
    if relative_error(theirs, ratio * o) < 1e-6:
        return [f"your output is {ratio:.6g} times the operator's everywhere: the scale differs"]
    apart = ((theirs - o).abs() > 1e-3 * o.abs().max()).transpose(0, 1).flatten(1).any(1).nonzero()
    if len(apart):
        hints.append(f"the outputs part at token {int(apart[0])} of {o.shape[1]}")
    log = profile.module.SPEC.get("decay") or {}
    if profile.drivers and isinstance(log, dict) and (text := log.get("log") or log.get("value")):
        names = ", ".join(profile.drivers)
        kind = "log-decay" if log.get("log") else "decay"
        hints.append(f"the operator works its {kind} out of {names}: {text}; does yours take it ready-made?")
    return hints


def _where(error: BaseException) -> str:
    """An exception in one line, with the last place in a file of the user's."""
    lines = str(error).splitlines() or [""]
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "site-packages" not in f.filename]
    own = [f for f in frames if not f.filename.startswith((str(Path(__file__).parents[1]), "<frozen"))]
    place = f" ({own[-1].filename}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {lines[0]}{place}"
