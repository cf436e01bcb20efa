"""The decay: its type, the axes along which it varies, its expression, and that it never makes the state grow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import sympy

from recgen.algebra.activations import LogSigmoid, Sigmoid
from recgen.algebra.complex_values import COMPLEX_LANGUAGE, is_complex, split
from recgen.algebra.functions import LANGUAGE, Fn
from recgen.spec.axes import check_axes, tensors_in
from recgen.spec.context import Context
from recgen.spec.document import Scalar
from recgen.spec.expression import Scope
from recgen.spec.model import HEAD, SIZES, Decay, DecayAxes, DecayType, Expr, Tensor
from recgen.spec.source import listing
from recgen.spec.syntax import Number

PER_AXES: dict[str, tuple[str, str]] = {
    "head": ("BTH", ""),
    "key": ("BTHKM", "K"),
    "value": ("BTHV", "V"),
    "key_value": ("BTHKV", "KV"),
    "channel": ("BTD", "D"),
}
"""Declared structure → (axes the log-decay may vary along, axes it must vary along)."""

NO_DECAY = Decay("none", "head", Expr("0", sympy.Integer(0)))


@dataclass(frozen=True)
class DecayParts:
    """What a document says of its decay. `path` is where its keys are, () for a family's own file."""

    type: DecayType
    per: DecayAxes
    log: Scalar | None
    value: Scalar | None
    bounds: tuple[float, float] | None
    path: tuple[str, ...]
    constants: Mapping[str, Number] = field(default_factory=dict)


def read_decay(context: Context, parts: DecayParts, tensors: Mapping[str, Tensor]) -> Decay | None:
    """The checked decay of a document, or None after adding what is wrong with it."""
    given = _one_expression(context, parts)
    if parts.type == "none":
        return None if given else NO_DECAY
    if given is None:
        return None
    key, scalar = given
    path = (*parts.path, key)
    expr = context.expression(scalar, _scope(parts, tensors, COMPLEX_LANGUAGE if key == "log" else LANGUAGE))
    if expr is None:
        return None
    if key == "value":
        expr = _log_of(context, path, expr)
    if expr is None or not _check_complex(context, parts, path, expr):
        return None
    sound = _check_kind(context, parts, path, expr, tensors)
    if not sound or not _check_per(context, parts, path, expr, tensors):
        return None
    expr = Expr(expr.text, _stable(expr.tree), expr.at)
    return Decay(parts.type, parts.per, expr, parts.bounds)


def _one_expression(context: Context, parts: DecayParts) -> tuple[str, Scalar] | None:
    """The one of log and value that is given. Says what is wrong otherwise; type none needs neither."""
    both = [(key, scalar) for key, scalar in (("log", parts.log), ("value", parts.value)) if scalar is not None]
    if parts.type == "none":
        for key, _ in both:
            fix = f"remove {key}, or write type: fixed, learned or gated"
            context.refuse_at((*parts.path, key), f"type: none has no {key}", fix)
    elif not both:
        fix = "add `log: …` (at most 0), or `value: …` (0 to 1)"
        context.refuse_at((*parts.path, "type"), f"a {parts.type} decay needs its expression", fix)
    elif len(both) == 2:
        position = context.key_position(*parts.path, "value")
        context.refuse(position, "value", "log and value both state the decay", "keep one of them: value = exp(log)")
        return None
    return both[0] if both else None


def _scope(parts: DecayParts, tensors: Mapping[str, Tensor], functions: Mapping[str, Fn]) -> Scope:
    """A fixed decay uses h, H, K and numbers; a learned one parameters too; a gated one everything declared."""
    symbols: dict[str, sympy.Symbol] = {} if parts.per == "channel" else {"h": HEAD, "H": SIZES["H"], "K": SIZES["K"]}
    elsewhere = {
        letter: (f"{letter} does not enter a decay", "use h, H, K, numbers and declared names") for letter in ("V", "M")
    }
    if "x" not in tensors:
        elsewhere["x"] = ("x is the argument of a feature map, which has no decay", "use inputs and parameters")
    if parts.per == "channel":
        for name in ("h", "H", "K"):
            elsewhere[name] = (f"a vector state has channels, no heads, so there is no {name}", "use a parameter")
    for name, tensor in tensors.items():
        if parts.type == "fixed":
            fix = f"write type: {'gated' if tensor.role == 'input' else 'learned'}"
            elsewhere[name] = (f"a fixed decay uses h, H, K and numbers, and {name} is {_article(tensor)}", fix)
        elif parts.type == "learned" and tensor.role == "input":
            reason = f"{name} is an input, one value per token, and a learned decay is the same for every token"
            elsewhere[name] = (reason, "write type: gated")
        else:
            symbols[name] = tensor.symbol
    return Scope("the decay", symbols, elsewhere, parts.constants, functions)


def _article(tensor: Tensor) -> str:
    return {"input": "an input", "param": "a parameter", "buffer": "a buffer"}[tensor.role]


def _log_of(context: Context, path: tuple[str, ...], expr: Expr) -> Expr | None:
    """log(value). A value of exactly 0 keeps no state and is refused."""
    if expr.tree.is_zero or expr.tree.is_negative:
        context.refuse_at(path, "a decay of 0 or less keeps nothing of the state", "write a value above 0, up to 1")
        return None
    return Expr(f"log({expr.text})", sympy.log(expr.tree), expr.at)


def _stable(tree: sympy.Expr) -> sympy.Expr:
    """log(sigmoid(x)) as the one function logsigmoid(x), which neither overflows nor loses digits."""
    return tree.replace(
        lambda node: isinstance(node, sympy.log) and isinstance(node.args[0], Sigmoid),
        lambda node: LogSigmoid(node.args[0].args[0]),
    )


def _check_complex(context: Context, parts: DecayParts, path: tuple[str, ...], expr: Expr) -> bool:
    """A complex decay has a real and an imaginary part for every key channel."""
    if not is_complex(expr.tree):
        return True
    if parts.per != "key":
        reason = f"a complex decay turns each key channel by its angle, and this one is declared per: {parts.per}"
        context.refuse_at(path, reason, "write per: key")
        return False
    try:
        split(expr.tree)
    except ValueError as error:
        context.refuse_at(path, str(error), "write it with + - * /, whole powers, exp and expm1")
        return False
    return True


def _check_kind(
    context: Context, parts: DecayParts, path: tuple[str, ...], expr: Expr, tensors: Mapping[str, Tensor]
) -> bool:
    used = tensors_in(expr, tensors)
    inputs = [name for name, tensor in tensors.items() if tensor.role == "input"]
    params = [name for name, tensor in tensors.items() if tensor.role != "input"]
    if parts.type == "gated" and not any(tensor.role == "input" for tensor in used):
        fix = "write type: learned" if used else f"use {listing(inputs)}, or write type: fixed"
        context.refuse_at(path, "a gated decay changes from token to token, and this one depends on no input", fix)
        return False
    if parts.type == "learned" and not used:
        fix = f"use {listing(params)}, or write type: fixed" if params else "declare a parameter, or write type: fixed"
        context.refuse_at(path, "a learned decay depends on a parameter, and this one does not", fix)
        return False
    return True


def _check_per(
    context: Context, parts: DecayParts, path: tuple[str, ...], expr: Expr, tensors: Mapping[str, Tensor]
) -> bool:
    allowed, needed = PER_AXES[parts.per]
    if parts.type == "fixed" and parts.per == "channel":
        needed = ""
    what = f"the decay is declared per: {parts.per}"
    return check_axes(context, path, expr, tensors, allowed, what, _per_fix(expr, tensors), needed)


def _per_fix(expr: Expr, tensors: Mapping[str, Tensor]) -> str:
    """The declaration that would fit the expression."""
    letters = {letter for tensor in tensors_in(expr, tensors) for letter in tensor.axes} - {"B", "T"}
    for per, (allowed, needed) in PER_AXES.items():
        if letters <= set(allowed) and set(needed) <= letters:
            return f"write per: {per}, or declare its inputs and parameters with other axes"
    return "declare its inputs and parameters with other axes"
