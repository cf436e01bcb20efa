"""The torch forms of a stateful operator go segment by segment of time: the arguments of the functions of a segment."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from recgen.algebra.program import Node
from recgen.algebra.recurrence import Recurrence
from recgen.plan.kernels import Plan
from recgen.spec.model import Spec

from .groups import grouped_inputs
from .notes import Note
from .torch_lines import TorchWriter, end_lines

Setup = Callable[[TorchWriter, Sequence[Node]], list[str]]
"""What the statements of a function refer to."""


def segment_context(spec: Spec, rec: Recurrence, extras: Sequence[str]) -> dict[str, Any]:
    """extras: what the functions take besides tensors and states."""
    inputs, params = ([t.name for t in group] for group in (spec.inputs, spec.params))
    states = ", ".join(rule.name for rule in rec.states)
    here = [*(f"{n}[:, part]" for n in inputs), *params, *(_cut(n) for n in extras)]
    return {
        "segment_arguments": here,
        "segment_gradients": [
            *(f"d_{n}_part" if n in grouped_inputs(spec) else f"d_{n}[:, part]" for n in inputs),
            *(f"d_{n}_part" for n in params),
        ],
        "next_start": f"_, {states} = _segment_forward({', '.join(here)}, {states}, size)",
    }


def segment_end(
    spec: Spec, rec: Recurrence, plan: Plan, note: Note, extras: Sequence[str], setup: Setup
) -> dict[str, Any]:
    """The function that finds the state after a segment and nothing else: its lines, and what it takes of all that."""
    inputs, params = ([t.name for t in group] for group in (spec.inputs, spec.params))
    states = [rule.name for rule in rec.states]
    writer = end_lines(plan.program, note, inputs[0])
    lines = setup(writer, writer.nodes)
    if not re.search(r"\bT\b", "\n".join([*lines[1:], *writer.lines])):
        lines = lines[1:]
    text = "\n".join([*lines, *writer.lines])
    used = [n for n in (*inputs, *params, *extras, *states) if re.search(rf"(?<![\w.]){n}\b", text)]
    passed = [n if n in (*params, *states) else _cut(n) for n in used]
    return {
        "end_arguments": [*used, "size"],
        "end_setup": lines,
        "end_lines": writer.lines,
        "next_start": f"{', '.join(states)} = _segment_end({', '.join([*passed, 'size'])})",
    }


def _cut(name: str) -> str:
    return name if name == "scale" else f"{name}[:, part]"
