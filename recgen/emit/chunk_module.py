"""What the templates of a chunkwise operator need: the kernels and their launches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recgen.algebra.recurrence import Recurrence
from recgen.plan.kernels import Plan
from recgen.spec.model import Spec

from .kernel_helpers import helper_sources
from .launch import Launch, epilogue_lines, given_context, kernel_contexts, prologue_lines
from .layout import Layout
from .notes import Note
from .recurrent import recurrent_kernel
from .sizes import feature_letter, launch_shapes, size_setup, sizes_read
from .total_module import totals_kept


def chunk_context(
    spec: Spec, rec: Recurrence, plan: Plan, note: Note, value: str, extras: Sequence[str]
) -> dict[str, Any]:
    tensors = (*spec.inputs, *spec.params)
    features = feature_letter(rec)
    states = [] if plan.program.total else [rule.name for rule in rec.states]
    home = states[0] if states else "grid"  # what float32 buffers are made like
    kernels, launches, helpers = kernel_contexts(plan, note, value, home, features)
    ahead = 1 if plan.sums is None else 2  # launches of the forward pass
    given, computed = given_context(plan, tensors, extras)
    recurrent, recurrent_launch = None, None
    if plan.sums is None:
        recurrent, recurrent_launch, more = recurrent_kernel(rec, plan.forward, launches[0], Layout(True))
        helpers |= more
    sums = () if plan.sums is None else (plan.sums,)
    prologue, heads = prologue_lines((*sums, plan.forward, *plan.backward), tensors[0].name)
    epilogue, late = epilogue_lines(plan, home)
    late_sizes = size_setup(plan.epilogue.outputs.values(), tensors, home)
    shapes = launch_shapes(spec, states[0] if states else "", plan.given)
    products = [
        t.name
        for t in spec.inputs
        if t.symbol in spec.query.tree.free_symbols | spec.key.tree.free_symbols | spec.value.tree.free_symbols
    ]
    setup = [
        *computed,
        f"grid = _Grid(offsets, {f'{states[0]}.shape[0], ' if states else ''}{', '.join(shapes.names)})",
        *(f"{t.name} = {t.name}.float()" for t in spec.params),
        *size_setup(heads, tensors, home),
        *prologue,
    ]
    names = {
        "V": f"V = {shapes.value}",
        "rows": "rows = batch * T",
        "sequences": f"sequences = {home}.shape[0]",
        "pieces": "pieces = grid.pieces",
        "tiles_m": 'tiles_m = grid.tiles["m"]',
        "tiles_v": 'tiles_v = grid.tiles["v"]',
        "products": f"products = _products(({', '.join(products)}{',' * (len(products) == 1)}))",
    }

    def complete(lines: list[str], body: str) -> list[str]:
        return [*lines, *sizes_read(body, shapes.key, ("batch", "T", "H", features), names)]

    def text_of(ls: list[Launch]) -> str:
        return "\n".join(" ".join([*x.buffers, *x.pointers, *x.scalars, x.constants]) for x in ls)

    return {
        "kernels": kernels,
        "counts": repr(
            [c for c in ("H", "rows", "sequences", "pieces") if any(c in k.arguments for k in kernels)]
            + ["numbers"] * plan.program.total
        ),
        "kernel_helpers": helper_sources(helpers),
        "recurrent": recurrent,
        "recurrent_launch": recurrent_launch,
        "launch_setup_recurrent": [] if recurrent is None else complete(setup, text_of([recurrent_launch])),
        "forward_launches": launches[:ahead],
        "backward_launches": launches[ahead:],
        "shape_dtypes": ", ".join(f"{w}.dtype" for w in shapes.inputs) + ("," if len(shapes.inputs) == 1 else ""),
        **shapes.context,
        **given,
        "launch_setup": complete(setup, text_of(launches[:ahead])),
        "launch_setup_backward": complete(setup + late_sizes, text_of(launches[ahead:])),
        "epilogue": epilogue,
        "launched_gradients": [late.get(f"d_{t.name}", f"d_{t.name}") for t in tensors],
        "kept": [
            *totals_kept(plan),
            *dict.fromkeys(n.name for k in plan.backward for n in k.kept if n not in plan.given),
        ],
    }
