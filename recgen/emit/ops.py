"""What the templates need of the operators that an emitted module registers: schemas, shapes, casts."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from recgen.algebra.recurrence import Recurrence
from recgen.algebra.widths import changes_width, width
from recgen.plan.kernels import Plan
from recgen.spec.axes import widths_of
from recgen.spec.model import SIZES, Spec
from recgen.spec.source import listing

from .groups import grouped_inputs, heads_text, repeat_lines
from .layout import Layout
from .python_expr import PythonPrinter
from .sizes import extent

LINE = 100
"""Characters of a schema in one line."""


def ops_context(
    spec: Spec, rec: Recurrence, plan: Plan, extras: Sequence[str], kept: Sequence[str], launched: Sequence[str]
) -> dict[str, Any]:
    """What the templates need.

    extras: what the inner functions take besides tensors and states. kept: what the kernels keep for the backward pass.
    launched: the variables of the gradients that the launches of the backward pass return.
    """
    inputs, params = ([t.name for t in group] for group in (spec.inputs, spec.params))
    states = [] if plan.program.total else [rule.name for rule in rec.states]
    given = [e for e in extras if e != "scale"]
    config = ({"scale": "float"} if rec.scaled else {}) | {"mode": "str", "backend": "str"}
    config |= ({"schedule": "str"} if "split" in plan.schedules else {}) | {"size": "int"}
    hidden = [name for name in kept if name != "o"]  # the output leaves as what it is
    forward = [*inputs, *params, *states, *given, "offsets"]
    saved = [*forward, *(["o"] if "o" in kept else []), *(["kept"] if hidden else [])]
    gradients = ["d_o", *(f"d_{s}" for s in states)]
    value, cast, grouped = value_input(spec), cast_positions(spec), grouped_inputs(spec)
    heads = heads_text(grouped, states)
    output, hidden_shapes = _shape("BTHV" if Layout.of(rec).heads else "BTD", spec, rec, heads), []
    starts = {f"{s}_segments": s for s in states}
    for letters in _letters(plan, [name for name in hidden if name not in starts]):
        hidden_shapes.append(f"({_shape(letters, spec, rec, heads)})")
    for state in (starts[name] for name in hidden if name in starts):
        tokens = " * ".join(_size(letter, spec, rec) for letter in "BT")
        hidden_shapes.append(f"(_segments_kept(schedule, {tokens}, {state}), *{state}.shape[1:])")
    types = {"offsets": "Tensor?", "kept": "Tensor[]", **config}
    faked = [value, output, *states, *hidden_shapes, *(["backend"] if hidden else [])]
    faked += ["mode"] if starts.keys() & set(hidden) else []
    return {
        "op_tensors": forward[:-1],
        "op_given": given,
        "op_config": list(config),
        "op_hidden": hidden,
        "op_saved": saved,
        "op_gradients": gradients,
        "inputs_here": [*(f"{n}[:, part]" for n in inputs), *params],
        "extras_here": [e if e == "scale" else f"{e}[:, part]" for e in extras],
        "ends_here": [f"{s}_end[sequence]" for s in states],
        "states_here": [f"{s}[sequence]" for s in states],
        "gradients_here": [
            *(f"d_{n}_part" if n in grouped else f"d_{n}[:, part]" for n in inputs if plan.program.total),
            *(f"d_{n}_part" for n in params),
            *(f"d_{s}_start[sequence]" for s in states),
        ],
        "written_here": [f"d_{n}[:, part]" for n in inputs],
        "gradients_found": [
            *(f"d_{n}" for n in inputs),
            *(f"d_{n}.to({n}.dtype)" for n in params),
            *(f"d_{s}_start" for s in states),
        ],
        "forward_schema": _schema([*forward, *config], types),
        "backward_schema": _schema([*saved, *gradients, *config], types),
        "fake_arguments": _only_used([*forward, *config], " ".join(faked)),
        "output_shape": output,
        **_step(spec, states, extras, value, output),
        "grouped": grouped,
        "repeat_lines": repeat_lines(grouped, heads),
        "hidden_shapes": hidden_shapes,
        "repeated": [k for k, name in enumerate(launched) if name in launched[:k]],
        "cast_positions": cast,
        "cast_names": listing((inputs[k] for k in cast), "and"),
    }


def _step(spec: Spec, states: Sequence[str], extras: Sequence[str], value: str, output: str) -> dict[str, Any]:
    """The operator of one token, which writes the state after it where it is told to."""
    inputs, params = ([t.name for t in group] for group in (spec.inputs, spec.params))
    given = [e for e in extras if e != "scale"]
    ends, scale = [f"{s}_end" for s in states], [e for e in extras if e == "scale"]
    dense = [*inputs, *params, *given]
    arguments = [*inputs, *params, *states, *ends, *given, "slots", *scale]
    written = {end: f"Tensor({letter}!)" for end, letter in zip(ends, "abcdefgh", strict=False)}
    schema = _schema(arguments, {"slots": "Tensor?", "scale": "float", **written}, "Tensor")
    return {
        "step_arguments": arguments,
        "step_ends": ends,
        "step_dense": dense,
        "step_schema": schema,
        "step_fake_arguments": _only_used(arguments, f"{value} {output}"),
        "extras_list": list(extras),
    }


def value_input(spec: Spec) -> str:
    """The input whose dtype the output takes: of those in the value's expression, or of all, the first and widest."""
    used = {s.name for s in spec.value.tree.free_symbols}
    candidates = [t for t in spec.inputs if t.name in used] or list(spec.inputs)
    return max(candidates, key=lambda t: len(t.axes)).name


def cast_positions(spec: Spec) -> list[int]:
    """The inputs that autocast casts: all but those that an exponent is made of."""
    exponents = [spec.decay.log.tree] + ([spec.key_weight.tree] if spec.log_key_weight else [])
    held = {s.name for e in exponents for s in e.free_symbols}
    return [k for k, t in enumerate(spec.inputs) if t.name not in held]


def _schema(arguments: Iterable[str], types: Mapping[str, str], result: str = "Tensor[]") -> list[str]:
    """The schema, in lines that follow each other."""
    text = f"({', '.join(types.get(a, 'Tensor') + ' ' + a for a in arguments)}) -> {result}"
    lines = textwrap.wrap(text, LINE, break_long_words=False, break_on_hyphens=False)
    return [*(f"{line} " for line in lines[:-1]), lines[-1]]


def _only_used(arguments: Sequence[str], text: str) -> list[str]:
    """The arguments of a function with this text: those it does not use begin with _, and *_ ends them."""
    used = [bool(re.search(rf"(?<![\w.]){a}\b", text)) for a in arguments]
    last = len(used) - used[::-1].index(True)
    return [*(a if here else f"_{a}" for a, here in zip(arguments[:last], used, strict=False)), "*_"]


def _letters(plan: Plan, names: Sequence[str]) -> list[str]:
    """The axes of what kernels keep: a sum over a whole sequence, or a value per token and head."""
    totals = {c.start.leaf.name: "NH" + _widths(c.axes) for c in plan.program.carries if plan.program.total}
    rows = {n.name: "BTH" + _widths(n.axes) for k in plan.backward for n in k.kept}
    return [(totals | rows)[name] for name in names]


def _widths(axes: Iterable[str]) -> str:
    return "".join({"m": "M", "v": "V"}.get(a, "") for a in axes)


def _shape(letters: str, spec: Spec, rec: Recurrence, heads: str) -> str:
    """A shape as text: batch and time from the first input, N sequences, each other size from a tensor that has it."""
    grouped = bool(grouped_inputs(spec))
    return ", ".join(heads if letter == "H" and grouped else _size(letter, spec, rec) for letter in letters)


def _size(letter: str, spec: Spec, rec: Recurrence) -> str:
    first, tensors = spec.inputs[0].name, (*spec.inputs, *spec.params)
    if letter in "BT":
        return f"{first}.shape[{'BT'.index(letter)}]"
    if letter == "N":
        return f"{first}.shape[0] if offsets is None else offsets.shape[0] - 1"
    if letter != "M":
        return extent(letter, tensors)
    features = [q.expr for q in rec.quantities.values() if changes_width(q.expr)]
    if not features:
        return extent("K", tensors)
    count = width(features[0], widths_of(rec.tensors))
    assert count is not None
    sizes = {s: extent(s.name, tensors) for s in SIZES.values() if s in count.free_symbols}
    return PythonPrinter(sizes).text(count)
