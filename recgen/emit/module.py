"""Plan → the text of one module: what the templates need, gathered."""

from __future__ import annotations

from collections.abc import Sequence
from pprint import pformat
from typing import Any

import sympy

from recgen import __version__
from recgen.algebra.derive import Derivation
from recgen.algebra.mathtext import module_equations
from recgen.algebra.program import Node
from recgen.algebra.recurrence import Recurrence
from recgen.algebra.widths import Rotate
from recgen.plan.kernels import Plan
from recgen.spec.model import SIZES, Spec, Tensor

from .chunk_module import chunk_context
from .conditions import conditions_context
from .descriptions import FORMS, argument_doc, layout_context, quoted, state_docs, state_layout
from .initial import operator_context
from .layout import Layout
from .license import license_lines
from .maxima import maxima_context, maximum_layout
from .notes import Note, Notes
from .ops import ops_context, value_input
from .python_expr import PythonPrinter
from .reference import Reference, reference
from .render import environment, formatted
from .scan_module import scan_context, scan_writers
from .segments import segment_context, segment_end
from .sizes import feature_letter, feature_width, size_setup
from .torch_lines import TorchWriter, backward_lines, forward_lines
from .total_module import FORMS_OF_TOTALS, halves


def module_text(derivation: Derivation, plan: Plan) -> str:
    """The emitted module, formatted. Deterministic in the spec and the version of recgen."""
    return formatted(unformatted(derivation, plan, Notes(plan)))


def unformatted(derivation: Derivation, plan: Plan, note: Note) -> str:
    """The same before it is formatted, its lines as they are noted down."""
    context = module_context(derivation.spec, derivation.recurrence, plan, note)
    return environment().get_template("module.py.j2").render(context)


def module_context(spec: Spec, rec: Recurrence, plan: Plan, note: Note) -> dict[str, Any]:
    equations = module_equations(rec, plan.program)
    tensors = (*spec.inputs, *spec.params)
    names = [t.name for t in tensors]
    first = names[0]
    total = plan.program.total
    states = [rule.name for rule in rec.states if not total]
    position = {"position": "N"} if rec.rotates and not total else {}
    forms = FORMS_OF_TOTALS if total else FORMS
    extras = extra_arguments(rec)
    ref = reference(rec, first, note)
    layout = Layout.of(rec)
    maximum = maximum_layout(rec, layout)
    scans = plan.factorisation == "scan"
    forward: TorchWriter
    backward: TorchWriter
    if scans:
        forward, backward = scan_writers(plan, note, first)
    else:
        forward = forward_lines(plan.program, note, first)
        backward = backward_lines(plan.program, plan.adjoint, note, first)

    def setup(writer: TorchWriter, nodes: Sequence[Node]) -> list[str]:
        return _setup(writer, nodes, tensors, first)

    pairs = {}
    if plan.pairs is not None:
        parallel = forward_lines(plan.pairs, note, first)
        pairs = {
            "pairs_setup": setup(parallel, plan.pairs.nodes()),
            "pairs_lines": parallel.lines,
            "pairs_result": parallel.text.use(plan.pairs.outputs["o"]),
        }
    value = value_input(spec)
    grads = plan.adjoint.outputs
    context = {
        "license": license_lines(spec.license),
        "title": quoted(spec.title or spec.name),
        "cite": quoted(spec.cite),
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
        "step_passed": [
            *(
                f"{e}[:, None]" if e != "scale" and e != "position" else "position.detach()[:, None]"
                for e in extras
                if e != "scale"
            ),
            "slots",
            *(["scale"] if rec.scaled else []),
        ],
        "extras_in_step": ", ".join("position.detach()" if e == "position" else e for e in extras),
        "carried_names": [*states, *maximum, *position],
        "counted_fields": (*maximum, *position),
        "states": repr(
            {r.field: state_layout(rec, layout, r.axes) for r in rec.states if not total} | maximum | position
        ),
        "modes": repr(tuple(form for form, _ in forms)),
        "total": total,
        "schedules": repr(plan.schedules),
        "split": "split" in plan.schedules,
        "chunk_size": plan.chunk_size,
        "chunk_sizes": plan.chunk_sizes,
        "state_doc": state_docs(rec, layout, maximum, position),
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
        **layout_context(layout, scans, total),
        "shared_positions": tuple(
            k for k, t in enumerate(tensors) if layout.heads and t.role != "input" and "H" not in t.axes
        ),
        "whole_size": _whole_size(rec, plan),
        **_reference_context(rec, ref),
        "token_setup": size_setup(ref.nodes, tensors, first),
        "forward_setup": setup(forward, plan.program.nodes())[scans:],
        "forward_lines": forward.lines,
        "forward_result": forward.text.use(plan.program.outputs["o"]),
        "backward_setup": setup(backward, backward.nodes)[scans:],
        "backward_lines": backward.lines,
        "backward_results": [backward.text.use(grads[f"d_{n}"]) for n in names],
        **({} if total else segment_context(spec, rec, extras)),
        **(
            scan_context(spec, rec, plan, note, value, extras)
            if scans
            else {
                "state_ends": [f"{s}_end" for s in states],
                "d_state_starts": [f"d_{s}_start" for s in states],
                **({} if total else segment_end(spec, rec, plan, note, extras, setup)),
                "helpers": forward.text.helpers | backward.text.helpers,
                **pairs,
                **chunk_context(spec, rec, plan, note, value, extras),
            }
        ),
        "maxima": maxima_context(spec, rec, note),
        **_scale_context(spec),
        **conditions_context(spec),
        **operator_context(spec),
        "argument_docs": [argument_doc(t) for t in tensors],
    }
    context |= ops_context(spec, rec, plan, extras, context["kept"], context["launched_gradients"])
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
    context["uses_math"] = context["maxima"] is not None or "math." in bodies + context["scale_text"] + str(
        context["size_conditions"]
    )
    return context


def extra_arguments(rec: Recurrence) -> list[str]:
    """What the inner functions take besides tensors and states."""
    return [*(["scale"] if rec.scaled else []), *(["position"] if rec.rotates else []), *rec.tracks]


def _whole_size(rec: Recurrence, plan: Plan) -> str:
    """The chunk size that holds T tokens; a pair tree needs a power of two, and plain factors a bound."""
    if plan.longest_chunk:
        return f"min({plan.longest_chunk}, max(1, length))"
    if plan.factorisation == "scan":
        return "max(1, length)"
    return "1 << max(1, (length - 1).bit_length())" if rec.structure else "max(1, length)"


def _reference_context(rec: Recurrence, ref: Reference) -> dict[str, Any]:
    quantities = list(rec.quantities)
    return {
        "token_value_doc": ", ".join(q.replace("_", "-") for q in quantities).capitalize(),
        "token_lines": ref.token_lines,
        "token_results": ref.variables,
        "token_variables": ref.variables,
        "token_arguments": [*ref.variables, *(r.name for r in rec.states)],
        "token_at_t": [f"{v}[:, t]" if moving else v for v, moving in zip(ref.variables, ref.in_time, strict=True)],
        "step_lines": ref.step_lines,
        "no_output": ref.empty,
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
