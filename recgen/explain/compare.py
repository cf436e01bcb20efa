"""What differs between two specs: what they state, what follows from it, and what makes the one the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import sympy

from recgen.algebra.derive import Derivation, derive
from recgen.algebra.show.document import Block, Document, Prose, Section, Table, equations
from recgen.algebra.show.expressions import written
from recgen.algebra.show.layout import Equation, terms
from recgen.algebra.show.notation import Piece, Style, style_named
from recgen.algebra.show.step import Recurrent
from recgen.plan.kernels import Plan
from recgen.plan.passes import plan
from recgen.spec.axes import varies_with
from recgen.spec.model import Spec
from recgen.spec.write import spec_as_dict

from .costs import LENGTH, WIDTH, Costs, costs
from .document import number
from .relate import ABSENT, Obstacle, Setting, renaming, settings

PARTS = ("quantities", "decay_value", "updates", "reading", "output")
NAMES = ("name", "title", "cite")


@dataclass(frozen=True)
class _One:
    """One of the two, with what follows from it."""

    spec: Spec
    name: str
    found: Derivation
    plan: Plan
    costs: Costs

    @classmethod
    def of(cls, spec: Spec, name: str) -> _One:
        found = derive(spec, prove=False)
        planned = plan(found)
        return cls(spec, name, found, planned, costs(found, planned))


def _told_apart(a: Spec, b: Spec) -> tuple[str, str]:
    """What the two are called: specs of one name with their files."""
    files = Path(a.path).name, Path(b.path).name
    if a.name != b.name or a.path == b.path:
        return a.name, b.name
    x, y = files if files[0] != files[1] else (a.path, b.path)
    return f"{a.name} ({x})", f"{b.name} ({y})"


def compared(a: Spec, b: Spec, style: str = "text") -> Document:
    """The page of their differences, in one style."""
    first, second = _told_apart(a, b)
    one, two, w = _One.of(a, first), _One.of(b, second), style_named(style)
    names = renaming(one.found.recurrence, two.found.recurrence)
    return Document(
        (
            Section(w.prose(f"{first} and {second}"), (), 1),
            _in_short(one, two, names, w),
            *_statement(one, two, w),
            _consequences(one, two, w),
            _cost_table(one, two, w),
            *([] if names is not None else [_towards(one, two, w), _towards(two, one, w)]),
        )
    )


def _in_short(one: _One, two: _One, names: object, w: Style) -> Section:
    a, b = one.name, two.name
    if isinstance(names, dict):
        renamed = [f"{x} of {a} is {y} of {b}" for x, y in names.items() if x != y]
        said = f"{a} and {b} are the same mathematics"
        said += f" under other names: {', '.join(renamed)}" if renamed else ""
        apart = _different_keys(one.spec, two.spec)
        more = [key for key in apart if key not in ("inputs", "params", "decay", "query", "key", "value", *NAMES)]
        said += "." + (f" They differ in {', '.join(more)} alone." if more else "")
        starts = [x for x, y in names.items() if _start(one.spec, x) != _start(two.spec, y)]
        said += f" Initial values differ for {', '.join(starts)}." if starts else ""
    else:
        keys = [key for key in _different_keys(one.spec, two.spec) if key not in NAMES]
        said = f"Their specs differ in {', '.join(keys)}." if keys else "Their specs state the same."
    return Section("In short", (Prose(w.prose(said)),))


def _start(spec: Spec, name: str) -> str:
    return next((str(t.init) for t in spec.params if t.name == name), "")


def _different_keys(a: Spec, b: Spec) -> list[str]:
    x, y = spec_as_dict(a), spec_as_dict(b)
    return [key for key in dict.fromkeys([*x, *y]) if x.get(key) != y.get(key)]


def _statement(one: _One, two: _One, w: Style) -> list[Section]:
    """The equations of one step that one of the two has and the other has not."""
    lines = [_equations(x, w) for x in (one, two)]
    shared = {e.line() for e in lines[0]} & {e.line() for e in lines[1]}
    if len(shared) == max(map(len, lines)):
        return [Section("One step", (Prose("One step is the same in both."), *equations(lines[0])))]
    found = [
        Section(
            "One step", (Prose("In both:"), *equations([e for e in lines[0] if e.line() in shared])) if shared else ()
        )
    ]
    for x, own in zip((one, two), lines, strict=True):
        rest = [e for e in own if e.line() not in shared]
        blocks: tuple[Block, ...] = equations(rest) or (Prose("Nothing else."),)
        found.append(Section(w.prose(f"Only in {x.name}"), blocks, 3))
    return found


def _equations(x: _One, w: Style) -> list[Equation]:
    write = Recurrent(x.found.recurrence, w)
    if x.found.recurrence.causal:
        return [e for part in PARTS for e in getattr(write, part)()]
    return [*write.quantities(), *write.totals(), *write.reading(in_place=True), *write.output()]


def _consequences(one: _One, two: _One, w: Style) -> Section:
    """What follows: only rows in which they differ, and what is the same in a sentence."""
    plain: dict[str, Callable[[_One], str]] = {
        "inputs per token": lambda x: ", ".join(f"{t.name} [{t.layout}]" for t in x.spec.inputs),
        "parameters": lambda x: ", ".join(f"{t.name} [{t.layout}]" for t in x.spec.params) or "none",
        "what the decay varies with": _varies,
        "factorisation": lambda x: x.plan.factorisation,
        "readout": lambda x: x.spec.readout.kind,
        "normalizer": lambda x: x.spec.normalizer.kind,
        "what a token sees": lambda x: "what came before" if x.spec.causal else "all tokens",
        "rows of a chunk": lambda x: str(x.plan.chunk_size),
        "schedules": lambda x: ", ".join(x.plan.schedules),
        "kernels": lambda x: ", ".join(k.name.lstrip("_") for k in x.plan.kernels),
    }
    formulas: dict[str, Callable[[_One], str]] = {
        "range of the log-decay": lambda x: _bounds(x, w),
        "numbers of the state": lambda x: w.inline(str(written(sympy.expand(x.costs.state), w))),
    }
    cells = {name: [w.prose(value(x)) for x in (one, two)] for name, value in plain.items()}
    cells |= {name: [value(x) for x in (one, two)] for name, value in formulas.items()}
    rows = []
    for name, (ours, theirs) in cells.items():
        if ours != theirs:
            rows += [(name, w.prose(one.name), ours), ("", w.prose(two.name), theirs)]
    same = [name for name, (ours, theirs) in cells.items() if ours == theirs]
    words = f"The same in both: {', '.join(same)}." if same else "Nothing of this is the same in both."
    return Section("What follows", (*((Table(tuple(rows)),) if rows else ()), Prose(words)))


def _varies(x: _One) -> str:
    if x.spec.decay.type == "none":
        return "nothing: there is none"
    return ", ".join(varies_with(x.spec.decay.log, x.spec.tensors)) or "nothing: it is one number"


def _bounds(x: _One, w: Style) -> str:
    return "–" if x.found.bounds is None else w.inline(str(x.found.bounds).replace("inf", w.infinity))


def _cost_table(one: _One, two: _One, w: Style) -> Section:
    """Operations and memory of the forms, side by side."""
    forms = list(dict.fromkeys(f.name.split(" (")[0] for x in (one, two) for f in x.costs.forms))
    rows = [(form, *(_numbers(x.costs, form) for x in (one, two))) for form in forms]
    head = ("form", *(w.prose(x.name) for x in (one, two)))
    words = (
        f"Operations per token and head, and numbers kept beside inputs and output, for widths of {WIDTH},"
        f" {LENGTH:,} tokens and chunks of the default size."
    )
    return Section("Costs", (Prose(words), Table((head, *rows), titled=True)))


def _numbers(found: Costs, form: str) -> str:
    f = next((f for f in found.forms if f.name.split(" (")[0] == form), None)
    if f is None:
        return "none"
    return f"{number(found.number(f.count.products + f.count.others))}; {number(found.number(f.kept))}"


def _towards(one: _One, two: _One, w: Style) -> Section:
    """What to set in the first spec to have the second one."""
    a, b = one.name, two.name
    found = settings(one.found.recurrence, two.found.recurrence)
    title = w.prose(f"From {a} to {b}")
    if isinstance(found, Obstacle):
        return Section(title, (Prose(w.prose(f"No input of {a} makes it {b}: {_why(found, a, b)}")),))
    if not found:
        return Section(title, (Prose(w.prose(f"{a} computes what {b} computes.")),))
    words = Prose(
        w.prose(
            f"{a} computes what {b} computes where, with what stands on the right taken from {b}"
            f"{_left_over(one, two, found)}:"
        )
    )
    return Section(title, (words, *equations([_equation(s, one, two, w) for s in found])))


def _left_over(one: _One, two: _One, found: Sequence[Setting]) -> str:
    """What the first one has beyond that, and may be anything."""
    names = {s.name for x in found for s in x.value.free_symbols}
    free = [t.name for t in one.spec.tensors if t.name in names and t.name not in {t.name for t in two.spec.tensors}]
    return f" and {', '.join(free)} as you like" if free else ""


def _why(obstacle: Obstacle, a: str, b: str) -> str:
    if not obstacle.quantity:
        return f"{obstacle.reason}."
    if obstacle.reason == ABSENT:
        return f"{b} has {_called(obstacle.quantity)}, which {a} has not."
    return f"it would need another {_called(obstacle.quantity).split(' ', 1)[1]}, but {obstacle.reason}."


def _called(quantity: str) -> str:
    return f"a {quantity.replace('log_decay', 'log-decay').replace('_', ' ')}"


def _equation(s: Setting, one: _One, two: _One, w: Style) -> Equation:
    ours, theirs = Recurrent(one.found.recurrence, w), Recurrent(two.found.recurrence, w)
    left = _tensor(ours, s.tensor.symbol, w)
    if s.value.is_infinite:
        sign = "-" if s.value == -sympy.oo else ""
        return Equation(str(left), "→" if w.name == "text" else r"\to", terms(w, [Piece(f"{sign}{w.infinity}")]))

    def spell(symbol: sympy.Symbol) -> Piece:
        known = theirs if symbol.name in two.found.recurrence.tensors else ours
        return _tensor(known, symbol, w)

    return Equation(str(left), "=", terms(w, [written(s.value, w, spell)]))


def _tensor(write: Recurrent, symbol: sympy.Symbol, w: Style) -> Piece:
    """An input with its token, a parameter without."""
    tensor = write.rec.tensors.get(symbol.name) if symbol.is_integer is None else None
    letters: Iterable[str] = (
        []
        if tensor is None
        else write.letters("".join({"K": "m", "M": "m", "V": "v", "D": "v"}.get(a, "") for a in tensor.axes))
    )
    row = ["t"] if tensor is not None and "T" in tensor.axes else []
    return w.indexed(symbol.name, [*row, *letters])
