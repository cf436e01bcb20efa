"""What the templates of a scanned operator need: the torch functions of a segment, the kernels and their launches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from recgen.algebra.mathtext import hand_over_equation
from recgen.algebra.program import Node
from recgen.algebra.recurrence import Recurrence
from recgen.algebra.scan import log_decay_of
from recgen.plan.kernels import Plan, Store
from recgen.spec.model import Spec

from .groups import grouped_inputs
from .kernel_helpers import helper_sources
from .launch import buffer, epilogue_lines, given_context, prologue_lines
from .layout import Layout
from .notes import Note
from .recurrent import recurrent_kernel
from .scan_kernels import scan_kernels
from .sizes import Shapes, feature_letter, in_float32, launch_shapes, size_setup, sizes_read
from .step import step_context
from .torch_program import is_scalar
from .torch_scan import ScanWriter, segment_backward, segment_forward
from .triton_program import broadcast


def scan_writers(plan: Plan, note: Note, first: str) -> tuple[ScanWriter, ScanWriter]:
    """The functions of one segment of time, forwards and backwards."""
    return segment_forward(plan.program, note, first), segment_backward(plan.program, plan.adjoint, note, first)


def scan_context(
    spec: Spec, rec: Recurrence, plan: Plan, note: Note, value: str, extras: Sequence[str]
) -> dict[str, Any]:
    layout, tensors = Layout.of(rec), (*spec.inputs, *spec.params)
    grouped, heads = grouped_inputs(spec), ["H"] if Layout.of(rec).heads else []
    state = rec.states[0].name
    kernels, launches, helpers = scan_kernels(plan, layout, note, grouped)
    prologue, head_values = prologue_lines((*plan.alone, plan.forward, *plan.backward), tensors[0].name)
    epilogue, late = epilogue_lines(plan, tensors[0].name, grouped)
    backward = plan.backward[0]
    given, computed = given_context(plan, tensors, extras, grouped)
    shapes, features = _shapes_of(spec, layout, state, plan.given), feature_letter(rec)
    first = [*(f"H = {state}.shape[1]" for _ in heads), *computed]
    uniform = size_setup([n for n in head_values if not is_scalar(n)], tensors, state, *heads)
    head_lines = [*uniform, *prologue]
    grid = f"grid = _Grid({', '.join(['SIZE', 'offsets', f'{state}.shape[0]', *heads, *shapes.names])})"
    read = "\n".join([*head_lines, *(p for launch in launches for p in launch.pointers)])

    def setup(text: str) -> list[str]:
        return [*first, grid, *in_float32(spec.params, f"{read}\n{text}"), *head_lines]

    buffers = [f"{s.name} = {_buffer(s, layout, features, value, state, grouped)}" for s in backward.stores]
    passed = {"rows": "rows", "slots": "grid.chunks", "first_slot": "first_slot"}
    numbers = [
        [*launch.scalars, *(passed[a] for a in kernel.arguments if a in passed)]
        for kernel, launch in zip(kernels[2:], launches[2:], strict=True)
    ]
    output = f"o = {_buffer(plan.forward.stores[0], layout, features, value, state, grouped)}"
    recurrent = recurrent_kernel(rec, plan.forward, replace(launches[1], buffers=[output]), layout, note, grouped)
    letters = ("batch", "T", "_", features) if layout.heads else ("batch", "T", "CHANNELS")
    others = {"rows": "rows = batch * T", **({"V": f"V = {shapes.value}"} if layout.heads else {})}
    late_sizes = size_setup(plan.epilogue.outputs.values(), tensors, state, *heads)

    def complete(lines: list[str], body: list[str], size: str) -> list[str]:
        lines = [line.replace("SIZE", size) for line in lines]
        return [*lines, *sizes_read("\n".join([*lines[1 + bool(heads) :], *body]), shapes.key, letters, others)]

    launched = [*launches[3].pointers, *numbers[1], *buffers]
    whole = f"max(1, {tensors[0].name}.shape[1])"
    return {
        "kernels": kernels,
        "counts": repr(
            [c for c in ("H", "rows", "slots", "first_slot") if any(c in k.arguments for k in kernels)] + ["states"]
        ),
        "kernel_helpers": helper_sources(helpers | recurrent.helpers),
        "recurrent": recurrent.context,
        "recurrent_launch": recurrent.launch,
        **step_context(spec, rec, recurrent, features, shapes, first, head_lines),
        "launches": launches,
        "kept": [],
        "edges": max(len(k.edges) for k in (plan.alone[1], backward)),
        **given,
        "launch_setup": complete(setup(""), [output], "size"),
        "launch_setup_recurrent": complete(setup(""), [output], whole),
        "launch_setup_backward": complete(setup("\n".join(epilogue)) + late_sizes, [*launched, *epilogue], "size"),
        "output_buffer": output,
        "gradient_buffers": buffers,
        "backward_numbers": ["".join(f"{n}, " for n in given_now) for given_now in numbers],
        "epilogue": epilogue,
        "launched_gradients": [late.get(f"d_{t.name}", f"d_{t.name}") for t in tensors],
        **shapes.context,
        "totals_shape": _totals_shape(plan, layout, state),
        "hand_over": _hand_over(plan, layout) | {"noted": note.mark("", hand_over_equation(rec))},
        "hand_over_arguments": [*layout.counts, *(f"{c}: tl.constexpr" for c in layout.constants)],
        "forward_ends": [f"{rule.name}_states[:, -1]" for rule in rec.states],
        "backward_ends": [f"d_{rule.name}_states[:, 0]" for rule in rec.states],
    }


def _shapes_of(spec: Spec, layout: Layout, state: str, given: Sequence[Node]) -> Shapes:
    if layout.heads:
        return launch_shapes(spec, state, given)
    first = next(t.name for t in spec.inputs if "D" in t.axes)
    return Shapes((first,), (first,), f"{first}.shape", f"{first}.shape")


def _buffer(s: Store, layout: Layout, features: str, value: str, state: str, grouped: Sequence[str]) -> str:
    tiles = [] if "v" in s.node.axes else ["grid.tiles"]
    widths = ["H"] * layout.heads + [features if a == "m" else layout.widths[a] for a in s.node.axes if a != "t"]
    return buffer(s, tiles, "grid.chunks", widths, value, state, grouped)


def _totals_shape(plan: Plan, layout: Layout, state: str) -> str:
    log = log_decay_of(plan.program.carries[0])
    if log is None:
        return ""
    if log.axes == plan.program.carries[0].axes:
        return f"grid.chunks, *{state}.shape[1:]"
    sizes = {"m": f"{state}.shape[2]", "v": f"{state}.shape[-1]"}
    return ", ".join(["grid.chunks", *(["grid.heads"] if layout.heads else []), *(sizes[a] for a in log.axes)])


def _hand_over(plan: Plan, layout: Layout) -> dict[str, str]:
    """The lines of the kernel that hands the state from chunk to chunk."""
    carry = plan.program.carries[0]
    log = log_decay_of(carry)
    axes = "".join(carry.axes)
    at, sequence = layout.row("slot"), layout.row("sequence")
    return {
        "load_start": layout.load("start_ptr", sequence, axes, wide=True),
        "load_edge": layout.load("edges_ptr", at, axes, wide=True),
        "store_edge": layout.store("edges_ptr", at, axes, "state"),
        "store_end": layout.store("end_ptr", sequence, axes, "state"),
        "load_total": "" if log is None else layout.load("totals_ptr", at, log.axes, wide=True),
        "decay": "" if log is None else broadcast("tl.exp(total)", list(log.axes), list(axes)),
    }
