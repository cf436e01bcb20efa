"""What the templates of a chunkwise operator need: the kernels and their launches."""

from __future__ import annotations

from collections.abc import Sequence
from pprint import pformat
from typing import Any

from recgen.algebra.mathtext import hand_over_equation
from recgen.algebra.program import Node
from recgen.algebra.recurrence import Recurrence
from recgen.algebra.scan import log_decay_of
from recgen.plan.kernels import Kernel, Plan
from recgen.plan.tiles import known_tiles
from recgen.spec.model import Spec

from .groups import grouped_inputs, heads_text
from .kernel_helpers import helper_sources
from .launch import AHEAD, Launch, epilogue_lines, given_context, kernel_contexts, prologue_lines
from .layout import Layout
from .notes import Note
from .recurrent import recurrent_kernel
from .sizes import extent, feature_letter, in_float32, launch_shapes, size_setup, sizes_read
from .step import step_context
from .total_module import totals_kept


def chunk_context(
    spec: Spec, rec: Recurrence, plan: Plan, note: Note, value: str, extras: Sequence[str]
) -> dict[str, Any]:
    tensors, names = (*spec.inputs, *spec.params), [t.name for t in (*spec.inputs, *spec.params)]
    features, total = feature_letter(rec), plan.program.total
    states = [] if total else [rule.name for rule in rec.states]
    home = "grid" if total else states[0]  # what float32 buffers are made like
    grouped = grouped_inputs(spec)
    kernels, launches, helpers = kernel_contexts(plan, note, value, home, features, grouped)
    backward = launches[AHEAD:]
    given, computed = given_context(plan, tensors, extras, grouped)
    recurrent = None
    if not total:
        recurrent = recurrent_kernel(rec, plan.forward, launches[1], Layout(True), note, grouped)
        helpers |= recurrent.helpers
    prologue, head_values = prologue_lines(plan.kernels, names[0])
    products = [
        t.name
        for t in spec.inputs
        if t.symbol in spec.query.tree.free_symbols | spec.key.tree.free_symbols | spec.value.tree.free_symbols
    ]

    shapes = launch_shapes(spec, home, plan.given)
    first = [f"H = {heads_text(grouped, states) if grouped else extent('H', tensors)}", *computed]
    head_lines = [*size_setup(head_values, tensors, home, "H"), *prologue]
    epilogue, found = epilogue_lines(plan, home, grouped)

    def setup(passes: Sequence[Launch], schedule: str, late: Sequence[Node] = ()) -> list[str]:
        """What the launches of a pass refer to."""
        cut = [*([] if total else [schedule]), "0" if "fused" in schedule else "size", "offsets", "H"]
        texts = [" ".join([*x.buffers, *x.pointers, *x.scalars, x.constants]) for x in passes]
        others = {
            "V": f"V = {shapes.value}",
            "rows": "rows = batch * T",
            "segments": "segments = grid.segments",
            "products": f"products = _products(({', '.join(products)}{',' * (len(products) == 1)}))",
        }
        return [
            *first,
            f"grid = _Grid({', '.join([*cut, *shapes.names])})",
            *in_float32(spec.params, "\n".join([*texts, *head_lines, *(epilogue if late else [])])),
            *head_lines,
            *size_setup(late, tensors, home, "H"),
            *sizes_read("\n".join(texts), shapes.key, ("batch", "T", "_", features), others),
        ]

    return {
        "kernels": kernels,
        "sparse": any(k.sparse for k in plan.kernels),
        "hand_over": None if total else _hand_over(plan, note.mark("", hand_over_equation(rec))),
        **_costs(plan),
        **_known(plan),
        "counts": repr(
            [c for c in ("H", "rows", "segments") if any(c in k.arguments for k in kernels)]
            + ["numbers"]
            + ["states"] * (not total)
        ),
        "kernel_helpers": helper_sources(helpers),
        **(
            {}
            if recurrent is None
            else {
                "recurrent": recurrent.context,
                **step_context(spec, rec, recurrent, features, shapes, first, head_lines),
            }
        ),
        "recurrent_launch": recurrent and recurrent.launch,
        "launch_setup_recurrent": [] if recurrent is None else setup([recurrent.launch], '"fused"'),
        "forward_launches": launches[:AHEAD],
        "backward_launches": backward,
        "shape_dtypes": ", ".join(f"{w}.dtype" for w in shapes.inputs) + ("," if len(shapes.inputs) == 1 else ""),
        **shapes.context,
        **given,
        "launch_setup": setup(launches[:AHEAD], "schedule"),
        "launch_setup_backward": setup(backward, "schedule", list(plan.epilogue.outputs.values())),
        "epilogue": epilogue,
        "launched_gradients": [found.get(f"d_{t.name}", f"d_{t.name}") for t in tensors],
        "kept": [
            *totals_kept(plan),
            *dict.fromkeys(n.name for k in plan.backward for n in k.kept if n not in plan.given),
            *(f"{s}_segments" for s in states if "split" in plan.schedules),
        ],
    }


def _hand_over(plan: Plan, noted: str) -> dict[str, str]:
    """How the hand-over between segments finds a segment's log-decay, whose axes are some of the state's."""
    log = log_decay_of(plan.program.carries[0])
    axes = "" if log is None else "".join(a for a in log.axes if a in "mv")
    at = {
        "": "slot",
        "m": "slot * (numbers // WIDTH) + at // WIDTH",
        "v": "slot * WIDTH + at % WIDTH",
        "mv": "slot * numbers + at",
    }[axes]
    mask = ", mask=valid, other=0.0" if axes else ""
    total = "" if log is None else f"tl.load(totals_ptr + {at}{mask})"
    return {"noted": noted, "total": total, "width": "WIDTH" if axes in ("m", "v") else ""}


def _costs(plan: Plan) -> dict[str, str]:
    """What the schedules move per token, in rows of the width, and how many launches they take.

    Where one kernel can stand in for others it is counted, and states, which are few, are not.
    """

    def rows(kernels: Sequence[Kernel]) -> int:
        moved = (n for k in kernels for n in (*k.leaves(), *(s.node for s in k.stores)))
        return sum("t" in n.axes and len(n.axes) > 1 for n in moved)

    if "split" not in plan.schedules:
        return {"traffic": "", "launch_counts": ""}
    whole = {k.reverse for k in plan.whole}
    fused = [plan.forward, *plan.whole, *(k for k in plan.backward if k.reverse not in whole)]
    split = [*plan.alone, *fused]
    return {
        "traffic": repr({"fused": rows(fused), "split": rows(split)}),
        "launch_counts": repr({"fused": len(fused), "split": len(split) + 2 * len(plan.program.carries)}),
    }


def _known(plan: Plan) -> dict[str, str]:
    """The tiles that fit the kernels on known targets, as the text of a dict; empty where none are known."""
    tiles = known_tiles(plan)
    if tiles is None:
        return {"tiles": "", "tiles_triton": ""}
    found = {t: {w: dict(kernels) for w, kernels in widths.items()} for t, widths in tiles.found.items()}
    return {"tiles": pformat(found, width=110, sort_dicts=False), "tiles_triton": tiles.triton}
