"""Plan → the text of one module: the context of the templates, rendered strictly and formatted."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pprint import pformat
from typing import Any

import jinja2
import sympy

from recgen import __version__
from recgen.algebra.derive import Derivation
from recgen.algebra.mathtext import module_equations
from recgen.algebra.program import Node
from recgen.algebra.recurrence import Recurrence, StateRule
from recgen.algebra.widths import Rotate
from recgen.plan.kernels import Plan
from recgen.resources import templates_dir
from recgen.spec.model import SIZES, Spec, Tensor

from .initial import operator_context
from .kernel_helpers import helper_sources
from .launch import Launch, epilogue_lines, given_doc, given_lines, kernel_contexts, prologue_lines
from .layout import Layout
from .maxima import maxima_context, maximum_layout
from .notes import Note, Notes
from .python_expr import PythonPrinter
from .recurrent import recurrent_kernel
from .reference import Reference, reference
from .scan_module import scan_context, scan_writers
from .sizes import feature_letter, feature_width, launch_shapes, size_setup
from .torch_lines import TorchWriter, backward_lines, forward_lines
from .total_module import FORMS_OF_TOTALS, halves, totals_kept

FORMS = [
    ("naive", "The definition: a loop over tokens in plain torch, differentiated by autograd."),
    ("parallel", "All pairs of tokens at once: quadratic in time, the chunkwise form with a single chunk."),
    ("chunk", "Chunk by chunk: linear in time, matrix products inside a chunk."),
    ("recurrent", "Token by token with nothing but the state in memory; its backward pass is the chunkwise one."),
]
STATE_WORDS = {"S": "the sum of decayed writes key valueᵀ", "z": "the sum of decayed keys"}


def module_text(derivation: Derivation, plan: Plan) -> str:
    """The emitted module, formatted. Deterministic in the spec and the version of recgen."""
    context = module_context(derivation.spec, derivation.recurrence, plan)
    return formatted(environment().get_template("module.py.j2").render(context))


def environment() -> jinja2.Environment:
    loader = jinja2.FileSystemLoader(templates_dir())
    return jinja2.Environment(
        loader=loader,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


def formatted(text: str) -> str:
    """The text as ruff formats it."""
    command = [
        sys.executable,
        "-m",
        "ruff",
        "format",
        "--isolated",
        "--config",
        "line-length=120",
        "--stdin-filename",
        "module.py",
        "-",
    ]
    repeated = [name for name, times in Counter(_definitions(text)).items() if times > 1]
    if repeated:
        raise ValueError(f"the emitted text defines {', '.join(repeated)} more than once")
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"the emitted text is not Python: {done.stderr}")
    return done.stdout


def _definitions(text: str) -> list[str]:
    """Names of the functions and classes at the top level."""
    return re.findall(r"^(?:def|class) (\w+)", text, re.MULTILINE)


def module_context(spec: Spec, rec: Recurrence, plan: Plan) -> dict[str, Any]:
    note = Notes(plan)
    equations = module_equations(rec, plan.program)
    tensors = (*spec.inputs, *spec.params)
    names = [t.name for t in tensors]
    first = names[0]
    total = plan.program.total
    states = [rule.name for rule in rec.states if not total]
    position = {"position": "N"} if rec.rotates and not total else {}
    forms = FORMS_OF_TOTALS if total else FORMS
    extras = extra_arguments(rec)
    ref = reference(rec, first)
    layout = Layout.of(rec)
    maximum = maximum_layout(rec, layout)
    scans = plan.factorisation == "scan"
    if scans:
        forward, backward = scan_writers(plan, note, first)
    else:
        forward = forward_lines(plan.program, note, first)
        backward = backward_lines(plan.program, plan.adjoint, note, first)
    pairs = {}
    if plan.pairs is not None:
        parallel = forward_lines(plan.pairs, note, first)
        pairs = {
            "pairs_setup": _setup(parallel, plan.pairs.nodes(), tensors, first),
            "pairs_lines": parallel.lines,
            "pairs_result": parallel.text.use(plan.pairs.outputs["o"]),
        }
    value = _value_input(spec)
    grads = plan.adjoint.outputs
    context = {
        "title": _quoted(spec.title or spec.name),
        "cite": _quoted(spec.cite),
        "version": __version__,
        "digest": spec.digest,
        "equations": [line.replace("\\", "\\\\") for line in equations],
        "spec": pformat(spec.as_dict(), width=110, sort_dicts=False),
        "inputs": repr({t.name: t.layout for t in spec.inputs}),
        "params": repr({t.name: t.layout for t in spec.params}),
        "rotates": rec.rotates,
        "scaled": rec.scaled,
        "turns_pairs": any(q.expr.has(Rotate) for q in rec.quantities.values()),
        "feature_letter": feature_letter(rec),
        "feature_width": feature_width(rec),
        "extras": ", ".join(extras),
        "extra_names": extras,
        "extras_in_step": ", ".join("position.detach().double()" if e == "position" else e for e in extras),
        "extras_of_document": [e if e == "scale" else f"{e}[:, start:end]" for e in extras],
        "carried_names": [*states, *maximum, *position],
        "states": repr(
            {r.field: _state_layout(rec, layout, r.axes) for r in rec.states if not total} | maximum | position
        ),
        "modes": repr(tuple(form for form, _ in forms)),
        "total": total,
        "schedules": repr((plan.factorisation if scans or total else "fused",)),
        "chunk_size": plan.chunk_size,
        "chunk_sizes": plan.chunk_sizes,
        "state_doc": [
            f"{r.field}: {_state_words(r)} [{_state_layout(rec, layout, r.axes).replace(' ', ', ')}]."
            for r in rec.states
        ]
        + [
            f"{name}: the largest logarithm of a weight so far, decayed: the sums are in units of its exponential "
            f"[{axes.replace(' ', ', ')}]."
            for name, axes in maximum.items()
        ]
        + complex_state_doc(rec)
        + [f"{name}: how many tokens it has seen [{axes}]." for name, axes in position.items()],
        "state_names": states,
        "state_fields": [*(rule.field for rule in rec.states), *maximum, *position],
        "d_states": [f"d_{s}" for s in states],
        "tensor_names": names,
        "all_names": [*names, *states],
        "first": first,
        "input_names": [t.name for t in spec.inputs],
        "value_input": value,
        "value_position": names.index(value),
        "decayed": bool(rec.log_decays),
        "forms": forms,
        "scans": scans,
        **_axes_context(layout, scans, total),
        "shared_positions": tuple(
            k for k, t in enumerate(tensors) if layout.heads and t.role != "input" and "H" not in t.axes
        ),
        "whole_size": _whole_size(rec, plan),
        **_reference_context(rec, ref),
        "token_setup": size_setup(ref.nodes, tensors, first),
        "forward_setup": _setup(forward, plan.program.nodes(), tensors, first)[scans:],
        "forward_lines": forward.lines,
        "forward_result": forward.text.use(plan.program.outputs["o"]),
        "backward_setup": _setup(backward, backward.nodes, tensors, first)[scans:],
        "backward_lines": backward.lines,
        "backward_results": [backward.text.use(grads[f"d_{n}"]) for n in names],
        **(
            scan_context(spec, rec, plan, note, value, extras)
            if scans
            else {
                "state_ends": [f"{s}_end" for s in states],
                "d_state_starts": [f"d_{s}_start" for s in states],
                "helpers": forward.text.helpers | backward.text.helpers,
                **pairs,
                **_kernel_context(spec, rec, plan, note, value, states),
            }
        ),
        "maxima": maxima_context(spec, rec),
        **_scale_context(spec),
        **operator_context(spec),
        "argument_docs": [_argument_doc(t) for t in tensors],
    }
    bodies = " ".join(
        map(
            str,
            [
                context["token_lines"],
                context["forward_lines"],
                context["backward_lines"],
                context["step_lines"],
                context["param_inits"],
            ],
        )
    )
    context["uses_math"] = context["maxima"] is not None or "math." in bodies + context["scale_text"]
    return context


def _quoted(text: str) -> str:
    """The text as it stands inside a docstring."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _kernel_context(
    spec: Spec, rec: Recurrence, plan: Plan, note: Note, value: str, states: list[str]
) -> dict[str, Any]:
    tensors = (*spec.inputs, *spec.params)
    features = feature_letter(rec)
    extras = extra_arguments(rec)
    home = states[0] if states else "grid"  # what float32 buffers are made like
    kernels, launches, helpers = kernel_contexts(plan, note, value, home, features)
    ahead = 1 if plan.sums is None else 2  # launches of the forward pass
    given, given_from = given_lines(plan, tensors)
    given_names = [n.name for n in plan.given]
    recurrent, recurrent_launch = None, None
    if plan.sums is None:
        recurrent, recurrent_launch, more = recurrent_kernel(rec, plan.forward, launches[0], Layout(True))
        helpers |= more
    sums = () if plan.sums is None else (plan.sums,)
    prologue, heads = prologue_lines((*sums, plan.forward, *plan.backward), tensors[0].name)
    epilogue, late = epilogue_lines(plan, home)
    late_sizes = size_setup(plan.epilogue.outputs.values(), tensors, home)
    shapes = launch_shapes(spec, states[0] if states else "", given_names)
    products = [
        t.name
        for t in spec.inputs
        if t.symbol in spec.query.tree.free_symbols | spec.key.tree.free_symbols | spec.value.tree.free_symbols
    ]
    setup = [
        *([f"{', '.join(given_names)} = _given({', '.join([*given_from, *extras])})"] if given else []),
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
        extra = [text for name, text in names.items() if re.search(rf"\b{name}\b", body)]
        needed = " ".join([body, *extra])
        sizes = [a if re.search(rf"\b{a}\b", needed) else "_" for a in ("batch", "T", "H", features)]
        shape = [f"{', '.join(sizes)} = {shapes.key}"] if set(sizes) != {"_"} else []
        return [*lines, *shape, *extra]

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
        "shape_inputs": ", ".join(shapes.names),
        "shape_dtypes": ", ".join(f"{w}.dtype" for w in shapes.inputs) + ("," if len(shapes.inputs) == 1 else ""),
        "key_source": shapes.inputs[0],
        "key_shape": shapes.key,
        "value_shape": shapes.value,
        "given_lines": given,
        "given_doc": given_doc(plan),
        "given_names": given_names,
        "given_from": given_from,
        "launch_setup": complete(setup, text_of(launches[:ahead])),
        "launch_setup_backward": complete(setup + late_sizes, text_of(launches[ahead:])),
        "epilogue": epilogue,
        "launched_gradients": [late.get(f"d_{t.name}", f"d_{t.name}") for t in tensors],
        "kept": [
            *totals_kept(plan),
            *dict.fromkeys(n.name for k in plan.backward for n in k.kept if n not in plan.given),
        ],
    }


def _state_layout(rec: Recurrence, layout: Layout, axes: str) -> str:
    letters = layout.state(axes).split()
    return " ".join(feature_letter(rec) if a == "K" else a for a in letters)


def extra_arguments(rec: Recurrence) -> list[str]:
    """What the inner functions take besides tensors and states."""
    return [*(["scale"] if rec.scaled else []), *(["position"] if rec.rotates else []), *rec.tracks]


def _state_words(rule: StateRule) -> str:
    return STATE_WORDS[rule.field] if "m" in rule.axes else "the sum of decayed values"


def complex_state_doc(rec: Recurrence) -> list[str]:
    """How the features of a state with a complex decay are a complex state."""
    if rec.complex_step is None:
        return []
    return ["   The complex state is exp(i (position - 1) angle) (S[:, :, :K] + i S[:, :, K:])."]


def _axes_context(layout: Layout, scans: bool, total: bool) -> dict[str, Any]:
    """How tensors are laid out, in words and in code."""
    widths = list(layout.letters.values())
    sizes = {"H": 2, "K": 16, "V": 16} if layout.heads else {"D": 32}
    tile = "head and tile" if layout.heads else "tile"
    return {
        "heads": layout.heads,
        "layout": "[batch, time, heads, width]" if layout.heads else "[batch, time, channels]",
        "output_layout": "[B, T, H, V]" if layout.heads else "[B, T, D]",
        "token_layout": "[B, H, …]" if layout.heads else "[B, D]",
        "token_output_layout": "[B, H, V]" if layout.heads else "[B, D]",
        "widths": widths,
        "tiled_widths": widths if not scans else widths[:-1],
        "sample_sizes": sizes,
        "kernels_comment": f"Triton kernels of the scan: one program per chunk, {tile}, tokens in turn, all in float32."
        if scans
        else f"Triton kernels of the chunkwise form: one program per piece of time, {tile}. Sums are float32."
        if total
        else f"Triton kernels of the chunkwise form: one program per sequence, {tile}. State and sums are float32.",
    }


def _value_input(spec: Spec) -> str:
    """The input whose dtype the output takes: the first one in the value's expression."""
    used = {s.name for s in spec.value.tree.free_symbols}
    return next(t.name for t in spec.inputs if t.name in used)


def _whole_size(rec: Recurrence, plan: Plan) -> str:
    """The chunk size that holds T tokens; a pair tree needs a power of two, and plain factors a bound."""
    if plan.longest_chunk:
        return f"min({plan.longest_chunk}, max(1, tensors[0].shape[1]))"
    if plan.factorisation == "scan":
        return "max(1, tensors[0].shape[1])"
    return "1 << max(1, (tensors[0].shape[1] - 1).bit_length())" if rec.structure else "max(1, tensors[0].shape[1])"


def _reference_context(rec: Recurrence, ref: Reference) -> dict[str, Any]:
    quantities = list(rec.quantities)
    value = ref.variables[quantities.index("value")]
    return {
        "token_value_doc": ", ".join(q.replace("_", "-") for q in quantities).capitalize(),
        "token_lines": ref.token_lines,
        "token_results": ref.variables,
        "token_variables": ref.variables,
        "token_arguments": [*ref.variables, *(r.name for r in rec.states)],
        "token_at_t": [f"{v}[:, t]" if moving else v for v, moving in zip(ref.variables, ref.in_time, strict=True)],
        "step_lines": ref.step_lines,
        "value_variable": value,
        **({} if rec.causal else halves(rec, ref)),
    }


def _setup(writer: TorchWriter, nodes: Sequence[Node], tensors: Sequence[Tensor], first: str) -> list[str]:
    """What the statements refer to besides their arguments: T, head index, sizes, row counts."""
    lines = [f"T = {first}.shape[1]"]
    lines += size_setup(nodes, tensors, first)
    if {"row", "length"} & writer.text.helpers:
        lines.append(f"row = torch.arange(size, dtype={first}.dtype, device={first}.device)")
    if "length" in writer.text.helpers:
        lines.append(f"chunk = torch.arange(-(-T // size), dtype={first}.dtype, device={first}.device)")
        lines.append("length = (T - size * chunk).clamp(max=size)  # rows of each chunk")
    return lines


def _scale_context(spec: Spec) -> dict[str, Any]:
    printer = PythonPrinter({s: name for name, s in SIZES.items()})
    tree = spec.scale.tree
    used = sorted(s.name for s in tree.free_symbols)
    return {
        "scale_text": printer.text(sympy.Float(1.0) if tree == 1 else tree),
        "scale_setup": [f'{n} = sizes["{n}"]' for n in used],
    }


def _argument_doc(tensor: Tensor) -> str:
    kind = {"input": "input", "param": "learned parameter", "buffer": "buffer"}[tensor.role]
    return f"{tensor.name}: {kind} [{', '.join(tensor.axes)}]."
