"""Declared inputs and parameters: their names, axes and initial values."""

from __future__ import annotations

from collections.abc import Mapping

from sympy import Expr, pi

from recgen.algebra.bounds import undefined
from recgen.algebra.defined import fails_everywhere
from recgen.spec.context import Context
from recgen.spec.expression import Scope
from recgen.spec.initial import INITIAL, Orthogonal, drawn_from, without_draws
from recgen.spec.model import CHANNEL, CHANNELS, HEAD, SIZES, Tensor
from recgen.spec.names import refuse_tensor_name
from recgen.spec.shape import ParamShape
from recgen.spec.values import Axes

_PARAM_ORDER = "HMKVD"
_INPUT_LAYOUTS = ("B T H", "B T H K", "B T H V", "B T H K V", "B T D")


def read_inputs(context: Context, declared: Mapping[str, Axes]) -> list[Tensor]:
    """The inputs of a document, in its order; what is wrong with one is added to the context."""
    tensors = []
    for name, axes in declared.items():
        _check_name(context, "inputs", name)
        layout = " ".join(axes.letters)
        if layout not in _INPUT_LAYOUTS:
            reason = f"an input has one value per token, with the axes in the order B T H K V, not {layout or 'none'}"
            context.refuse_at(("inputs", name), reason, f"write one of: {', '.join(_INPUT_LAYOUTS)}")
        at = context.source.location(context.key_position("inputs", name))
        tensors.append(Tensor(name, axes.letters, "input", None, at))
    return tensors


def read_params(context: Context, declared: Mapping[str, ParamShape]) -> list[Tensor]:
    """The parameters and buffers of a document, in its order, with their initial values."""
    tensors = []
    for name, shape in declared.items():
        _check_name(context, "params", name)
        _check_param_axes(context, name, shape.axes)
        init = None
        if shape.init is None:
            reason = f"{name} has no initial value, and none is guessed"
            context.refuse(context.key_position("params", name), name, reason, "add `init: 0`, or an expression")
        else:
            init = context.expression(shape.init, _init_scope(name, shape.axes))
            if init is not None:
                _check_initial(context, name, shape.axes, init.tree)
        at = context.source.location(context.key_position("params", name))
        tensors.append(Tensor(name, shape.axes.letters, "buffer" if shape.buffer else "param", init, at))
    return tensors


def _check_name(context: Context, group: str, name: str) -> None:
    refused = refuse_tensor_name(name)
    if refused:
        context.refuse(context.key_position(group, name), name, *refused)


def _check_param_axes(context: Context, name: str, axes: Axes) -> None:
    given = axes.letters
    path = ("params", name, "axes")
    per_token = [letter for letter in given if letter in "BT"]
    if per_token:
        reason = f"a parameter has no {per_token[0]} axis: it is the same for every token of every sequence"
        context.refuse_at(path, reason, f"declare {name} under inputs, or drop the axis")
    elif not given:
        context.refuse_at(path, "a parameter has at least one axis", "write axes: H for one number per head")
    elif list(given) != sorted(given, key=_PARAM_ORDER.index):
        ordered = " ".join(sorted(given, key=_PARAM_ORDER.index))
        context.refuse_at(path, "axes are written in the order H M K V D", f"write {ordered}")


def _check_initial(context: Context, name: str, axes: Axes, tree: Expr) -> None:
    """Refuses an initial value that is no number for some draws, or at some index whatever the sizes are."""
    path, (value, ranges) = ("params", name, "init"), without_draws(tree)
    wrong = undefined(value, ranges) or next(filter(None, map(fails_everywhere, (value, *drawn_from(tree)))), "")
    if wrong:
        fix = "keep logarithms, roots and divisions defined; indices start at 0: log(1 + h) for log(h)"
        context.refuse_at(path, wrong, fix)
    elif tree.has(Orthogonal) and len(axes.letters) < 2:
        reason = f"orthogonal draws rows of a matrix, and {name} has the axis {' '.join(axes.letters)} alone"
        context.refuse_at(path, reason, "write normal(0, 1), or give it two axes, such as H K")


def _init_scope(name: str, axes: Axes) -> Scope:
    symbols: dict[str, Expr] = {**SIZES, "pi": pi}
    elsewhere = {}
    channel = ("D", CHANNEL, "channel", "channel") if "D" in axes.letters else ("K", CHANNEL, "key channel", "key")
    if "D" in axes.letters:
        symbols[CHANNELS.name] = CHANNELS
    for letter, index, index_of, what in (("H", HEAD, "head", "head"), channel):
        if letter in axes.letters:
            symbols[index.name] = index
        else:
            reason = f"{index.name} is the {index_of} index, and {name} has no {what} axis"
            elsewhere[index.name] = (reason, f"add {letter} to the axes of {name}")
    return Scope(f"the initial value of {name}", symbols, elsewhere, functions=INITIAL, declared="")
