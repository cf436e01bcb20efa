"""The running maximum of a stabilised operator as text: what enters it, and what is relative to what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recgen.algebra.chunkwise import token_value
from recgen.algebra.graph import Graph
from recgen.algebra.recurrence import Quantity, Recurrence, axes_of, real
from recgen.algebra.stabiliser import READ_MAXIMUM, READ_SHIFT, Stabiliser
from recgen.spec.model import Spec

from .groups import grouped_inputs
from .layout import Layout
from .notes import Note
from .reference import value_lines
from .sizes import size_setup

FIELD = "m"
"""The maximum's name in the State."""


def maxima_context(spec: Spec, rec: Recurrence, note: Note) -> dict[str, Any] | None:
    """What the templates need of the running maximum; None where there is none."""
    held = rec.stabiliser
    if held is None:
        return None
    exprs = {"log_decay": held.log_decay, "log_weight": held.entering, "log_own": held.log_own}
    given = {name: e for name, e in exprs.items() if e is not None and e != 0}
    used = {s.name for e in given.values() for s in e.free_symbols}
    every = (*spec.inputs, *spec.params)
    sizes = [a for a in "HKV" if a in used]  # each is read off the first tensor that has it
    used |= {next(t.name for t in every if a in t.axes) for a in sizes}
    tensors = [t for t in every if t.name in used]
    positions = [k for k, t in enumerate(every) if t.name in used]
    graph, first = Graph(), tensors[0].name
    quantities = [Quantity(real(name), axes_of(e, rec.tensors), e) for name, e in given.items()]
    nodes = [token_value(graph, q, rec, name=q.name) for q in quantities]
    lines, names = value_lines(graph, nodes, first, note)
    results = {
        q.name: names[n] if q.name == "log_own" or set(held.axes) <= set(q.axes) else f"{names[n]}[..., None]"
        for q, n in zip(quantities, nodes, strict=True)
    }
    return {
        "names": [t.name for t in tensors],
        "positions": positions,
        "weighed_in_step": _weighed(positions, [t.name in grouped_inputs(spec) for t in every], 1),
        "weighed": _weighed(positions, [t.name in grouped_inputs(spec) for t in every]),
        "weight_lines": [*size_setup(nodes, tensors, first), *lines],
        "weights": list(({"log_decay": f"torch.zeros_like({results['log_weight']})"} | results).values()),
        "has_own": held.log_own is not None,
        "tracks": list(rec.tracks),
        "track_lines": _track_lines(rec, held),
        "field_index": len(rec.states),
    }


def _weighed(positions: Sequence[int], grouped: Sequence[bool], axis: int = 2) -> str:
    """The tensors at these positions with a value for every head."""
    if not any(grouped[k] for k in positions):
        return f"(tensors[k].contiguous().to(dtype) for k in {positions})"
    places = f", axis={axis}" if axis != 2 else ""
    texts = [f'_repeated(tensors[{k}], sizes["H"]{places})' if grouped[k] else f"tensors[{k}]" for k in positions]
    return f"(x.contiguous().to(dtype) for x in ({', '.join(texts)}{',' * (len(texts) == 1)}))"


def _track_lines(rec: Recurrence, held: Stabiliser) -> list[str]:
    """What is relative to what: from `before` and `maximum`, the maxima before and after each token."""
    lines, read, tracks = [], "before" if held.before else "maximum", rec.tracks
    over = ".amax(-1)" if "m" in held.axes else ""
    if READ_MAXIMUM.name in tracks or READ_SHIFT.name in tracks:
        largest = f"{read}{over}"
        if held.log_own is not None:
            own = "log_own.amax(-1)" if "m" in axes_of(held.log_own, rec.tensors) else "log_own"
            largest = f"torch.maximum({largest}, {own})"
        lines.append(f"read_maximum = {largest}")
    if READ_SHIFT.name in tracks:
        lines.append(f"read_shift = ({read} - read_maximum{'[..., None]' if over else ''}).clamp(min=GONE)")
    lines.append("shift = (before - maximum).clamp(min=GONE)")
    return lines


def maximum_layout(rec: Recurrence, layout: Layout) -> dict[str, str]:
    """The maximum's entry in STATE; none where there is none."""
    return {} if rec.stabiliser is None else {FIELD: layout.state(rec.stabiliser.axes)}
