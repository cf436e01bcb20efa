"""Query, key, value, their feature maps, weight, readout, rotation and scale: the expressions beside the decay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy

from recgen.algebra.bounds import undefined
from recgen.algebra.complex_values import COMPLEX_LANGUAGE, is_complex, split
from recgen.algebra.defined import EXTENT, fails_everywhere, map_without_value, without_value
from recgen.algebra.functions import LANGUAGE
from recgen.algebra.smooth import SMOOTHER, without_slope
from recgen.algebra.widths import FEATURE_LANGUAGE, is_wide, most_features, turned_product, wide_calls, width
from recgen.spec.axes import check_axes, widths_of
from recgen.spec.context import Context
from recgen.spec.document import Scalar
from recgen.spec.expression import Scope
from recgen.spec.model import FEATURE, HEAD, PAIR, SIZES, Decay, Expr, Readout, Tensor, symbol
from recgen.spec.shape import ReadoutShape, SpecShape
from recgen.spec.source import listing, near, suggestion

ONE = Expr("1", sympy.Integer(1))
IDENTITY = Expr("x", FEATURE)

NAMED_MAPS: dict[str, str] = {
    "identity": "x",
    "elu_plus_one": "elu(x) + 1",
    "square": "x ** 2",
    **{name: f"{name}(x)" for name, function in LANGUAGE.items() if function.arity == (1, 1)},
}
"""Feature maps that have a name; every function of one argument is one under its own name."""

MAX_WIDE_CALLS = 12
MAX_FEATURES = 512  # of a map where K is 3 and M is 4: outer products of five vectors, at most
AWAY = "keep logarithms, roots and divisions away from there, such as 1 / (i + 1) for 1 / i"
KEPT = "keep logarithms and divisions away from 0, such as log(relu(x) + 1e-6) for log(relu(x))"

_WIDTH = {"query": "K", "key": "K", "value": "V"}


def token_scope(
    what: str, tensors: Mapping[str, Tensor], state: str, decay: Decay | None, may_turn: bool = False
) -> Scope:
    """An expression of one token: inputs, parameters, the head index, the sizes, and the log-decay by its name.

    may_turn: whether it is complex under a complex decay.
    """
    turns = decay is not None and is_complex(decay.log.tree)
    symbols: dict[str, sympy.Expr] = {} if decay is None else {"log_decay": decay.log.tree}
    symbols |= {name: tensor.symbol for name, tensor in tensors.items()}
    if state == "matrix":
        symbols |= {"h": HEAD, **{size: SIZES[size] for size in ("H", "K", "V")}}
    elsewhere = {}
    if "x" not in tensors:
        elsewhere["x"] = ("x is the argument of a feature map, and this is none", "use inputs and parameters")
    if turns and not may_turn:
        del symbols["log_decay"]
        elsewhere["log_decay"] = (f"the log-decay is complex, and {what} is real", "use what it is made of")
    return Scope(what, symbols, elsewhere, functions=COMPLEX_LANGUAGE if turns and may_turn else LANGUAGE)


def _expression(
    context: Context,
    scalar: Scalar,
    what: str,
    tensors: Mapping[str, Tensor],
    state: str,
    decay: Decay | None,
    may_turn: bool = False,
) -> Expr | None:
    """An expression of one token, None where it is refused: it, or the decay that it uses."""
    if decay is None and context.node("decay") is not None and "log_decay" in scalar.raw:
        return None
    return context.expression(scalar, token_scope(what, tensors, state, decay, may_turn))


def read_role(
    context: Context, role: str, scalar: Scalar, tensors: Mapping[str, Tensor], state: str, decay: Decay | None
) -> Expr | None:
    """query, key or value as an expression of one token."""
    if state == "vector" and role != "value":
        context.refuse(context.key_position(role), role, f"a vector state has no {role}", f"remove {role}")
        return None
    expr = _expression(context, scalar, f"the {role}", tensors, state, decay, may_turn=role != "value")
    if expr is None:
        return None
    try:
        split(expr.tree)
    except ValueError as error:
        context.refuse_at((role,), str(error), "write it with + - * /, whole powers, exp and expm1")
        return None
    width = "D" if state == "vector" else _WIDTH[role]
    allowed = "BTD" if state == "vector" else f"BTH{width}"
    layout = "B T D" if state == "vector" else f"B T H {width}"
    fix = f"use inputs and parameters whose axes are among {layout}, one of them with {width}"
    sound = check_axes(context, (role,), expr, tensors, allowed, f"the {role} has the axes {layout}", fix, width)
    return expr if sound and _is_defined(context, (role,), expr) else None


def _is_defined(context: Context, path: tuple[str, ...], expr: Expr) -> bool:
    """Whether an expression has a value whatever its inputs are, and slopes; one that has not is refused."""
    wrong, fix = undefined(expr.tree), "write an expression that is defined for every input, such as log(1 + exp(x))"
    if not wrong:
        wrong, fix = fails_everywhere(expr.tree), AWAY
    if not wrong and (where := without_value(expr.tree)):
        wrong, fix = f"it has no finite value where {where}", KEPT
    if not wrong:
        wrong, fix = without_slope(expr.tree), SMOOTHER
    if wrong:
        context.refuse_at(path, wrong, fix)
    return not wrong


def _map_is_defined(context: Context, path: tuple[str, ...], expr: Expr, tensors: Mapping[str, Tensor]) -> bool:
    """The same of a map of the whole width."""
    widths = {**widths_of(tensors), FEATURE: (SIZES["K"],)}
    wrong, fix = undefined(expr.tree), "write what is defined for every x, such as log(1 + exp(x))"
    if not wrong:
        wrong, fix = fails_everywhere(expr.tree), AWAY
    if not wrong and (where := map_without_value(expr.tree, FEATURE, widths)):
        wrong, fix = f"it has no finite value where {where}", KEPT
    if wrong:
        context.refuse_at(path, wrong, fix)
    return not wrong


def _is_number(context: Context, path: tuple[str, ...], expr: Expr) -> bool:
    """Whether an expression of sizes and indices has a value at some sizes for every index."""
    wrong = fails_everywhere(expr.tree)
    if wrong:
        context.refuse_at(path, wrong, AWAY)
    return not wrong


def read_feature_map(
    context: Context, path: tuple[str, ...], scalar: Scalar, tensors: Mapping[str, Tensor]
) -> Expr | None:
    """A named map, or an expression in x and parameters, applied to each channel by itself."""
    if scalar.text in NAMED_MAPS:
        scalar = Scalar(NAMED_MAPS[scalar.text], True, scalar.start, scalar.end, scalar.raw)
    symbols: dict[str, sympy.Symbol] = {"x": FEATURE, "h": HEAD, "H": SIZES["H"], "K": SIZES["K"]}
    symbols |= {name: tensor.symbol for name, tensor in tensors.items() if tensor.role != "input" and name != "x"}
    if any("M" in tensor.axes for tensor in tensors.values()):
        symbols["M"] = SIZES["M"]
    elsewhere = {
        name: (f"{name} is an input, and a feature map sees one channel, x", "write it in `query:` or `key:`")
        for name, tensor in tensors.items()
        if tensor.role == "input" and name != "x"
    }
    close = near(scalar.text, NAMED_MAPS) if scalar.text.isidentifier() else None
    if close and scalar.text not in symbols and scalar.text not in elsewhere:
        elsewhere[scalar.text] = (f"there is no feature map {scalar.text[:40]}", f"did you mean {close}?")
    expr = context.expression(scalar, Scope("the feature map", symbols, elsewhere, {}, FEATURE_LANGUAGE, "params"))
    if expr is None:
        return None
    if FEATURE not in expr.tree.free_symbols:
        fix = f"write an expression in x, or one of {listing(sorted(NAMED_MAPS))}"
        context.refuse_at(path, "a feature map depends on its argument x", fix)
        return None
    if is_wide(expr.tree):
        if (calls := wide_calls(expr.tree)) > MAX_WIDE_CALLS:
            reason = f"this feature map has {calls} functions of the whole width, and {MAX_WIDE_CALLS} is the most"
            context.refuse_at(path, reason, "write a smaller map")
            return None
        widths = {**widths_of(tensors), FEATURE: (SIZES["K"],)}
        try:
            found = width(expr.tree, widths)
        except ValueError as error:
            fix = turned_product(expr.tree, widths) or "make both equally wide, or take a sum over the features"
            context.refuse_at(path, str(error), fix)
            return None
        if found is None:
            context.refuse_at(path, "this feature map gives one number, not features", "use the sum inside of a map")
            return None
        if most_features(expr.tree, widths, {SIZES[letter]: n for letter, n in EXTENT.items()}) > MAX_FEATURES:
            reason = f"this feature map has too many features: {found}, or more inside of it"
            context.refuse_at(path, reason, "take outer products of fewer vectors")
            return None
        return expr if _map_is_defined(context, path, expr, tensors) else None
    if not _is_defined(context, path, expr):
        return None
    fix = "give its parameters axes among H K"
    beside = {name: tensor for name, tensor in tensors.items() if name != "x"}  # here x is the argument
    sound = check_axes(context, path, expr, beside, "HK", "a feature map acts on each key channel by itself", fix)
    return expr if sound else None


def read_key_weight(
    context: Context, shape: SpecShape, tensors: Mapping[str, Tensor], decay: Decay | None
) -> tuple[Expr, bool]:
    """The weight w_t of what a token adds, or its logarithm and True."""
    weight = shape.key_weight
    path: tuple[str, ...] = ("key_weight",)
    if isinstance(context.node(*path), Scalar):
        scalar, is_log = weight.value, False
    else:
        given = [key for key in ("value", "log") if getattr(weight, key) is not None]
        if len(given) == 2:
            context.refuse_at(path, "value and log both state the weight", "keep one: value = exp(log)")
            return ONE, False
        if not given:
            if context.node(*path) is not None:
                context.refuse_at(path, "the weight has no expression", "write key_weight: {log: …} or key_weight: …")
            return ONE, False
        scalar, is_log, path = getattr(weight, given[0]), given[0] == "log", (*path, given[0])
    expr = _expression(context, scalar, "the key weight", tensors, shape.state, decay) if scalar else None
    allowed = "BTD" if shape.state == "vector" else "BTHKV"
    if expr is None or not check_axes(context, path, expr, tensors, allowed, "a weight", "declare other axes"):
        return ONE, False
    if expr.tree == 0 and not is_log:
        context.refuse_at(path, "a token of weight 0 writes nothing", "write a weight above 0, or leave it out")
        return ONE, False
    return (expr, is_log) if _is_defined(context, path, expr) else (ONE, False)


def read_readout(
    context: Context, shape: ReadoutShape, tensors: Mapping[str, Tensor], state: str, decay: Decay | None
) -> Readout:
    """Before or after the update, the current token's bonus, the skip connection and the output gate."""
    if shape.skip is not None:
        _check_skip(context, shape.skip, tensors, "D" if state == "vector" else "HV")
    bonus = None
    if shape.bonus is not None:
        bonus = _expression(context, shape.bonus, "the bonus", tensors, state, decay)
        allowed, fix = ("BTD", "B T D") if state == "vector" else ("BTHK", "B T H K")
        if bonus is not None:
            what, fix = f"the bonus weighs a key of axes {fix}", "use inputs and parameters with these axes"
            check_axes(context, ("readout", "bonus"), bonus, tensors, allowed, what, fix)
            _is_defined(context, ("readout", "bonus"), bonus)
    if shape.bonus is not None and shape.kind == "inclusive":
        reason = "a bonus weighs the current token, which an inclusive readout has in its state already"
        context.refuse(context.key_position("readout", "bonus"), "bonus", reason, "write kind: exclusive")
    gate = None
    if shape.gate is not None:
        gate = _expression(context, shape.gate, "the output gate", tensors, state, decay)
        allowed, fix = ("BTD", "B T D") if state == "vector" else ("BTHV", "B T H V")
        if gate is not None:
            what, fix = f"the gate multiplies an output of axes {fix}", "use inputs and parameters with these axes"
            check_axes(context, ("readout", "gate"), gate, tensors, allowed, what, fix)
            _is_defined(context, ("readout", "gate"), gate)
    return Readout(shape.kind, bonus, shape.skip, gate)


def _check_skip(context: Context, name: str, tensors: Mapping[str, Tensor], axes: str) -> None:
    path = ("readout", "skip")
    params = [tensor.name for tensor in tensors.values() if tensor.role != "input"]
    if name not in params:
        example = f"declare it: params: {{D: {{axes: {' '.join(axes)}, init: 1}}}}"
        fix = suggestion(name, params, example)
        context.refuse_at(path, f"skip names a parameter, and {name[:40]!r} is none", fix)
    elif set(tensors[name].axes) - set(axes):
        reason = f"skip has axes among {' '.join(axes)}, and {name} has {tensors[name].layout}"
        context.refuse_at(path, reason, f"declare {name} with axes: {' '.join(axes)}")


def read_rotation(context: Context, scalar: Scalar, tensors: Mapping[str, Tensor]) -> Expr | None:
    """The angle by which a pair of channels turns from one token to the next: an expression of the pair's index i."""
    symbols: dict[str, sympy.Symbol] = {"i": PAIR, "h": HEAD, "H": SIZES["H"], "K": SIZES["K"]}
    symbols |= {name: tensor.symbol for name, tensor in tensors.items() if tensor.role != "input" and name != "i"}
    elsewhere: dict[str, Any] = {
        name: (f"{name} is an input, and a rotation depends on the position alone", "use i, h, H, K and parameters")
        for name, tensor in tensors.items()
        if tensor.role == "input"
    }
    if "i" in tensors:
        at = tensors["i"]
        group = "inputs" if at.role == "input" else "params"
        context.refuse(context.key_position(group, "i"), "i", "i is the pair's index in a rotation", "call it i_in")
    expr = context.expression(scalar, Scope("the rotation", symbols, elsewhere, declared="params"))
    if expr is not None:
        fix = "use parameters with axes: H"
        check_axes(context, ("rotation",), expr, tensors, "H", "a rotation turns whole pairs of channels", fix)
        _is_defined(context, ("rotation",), expr)
    return expr


def read_scale(context: Context, scalar: Scalar, tensors: Mapping[str, Tensor], state: str) -> Expr | None:
    """The factor σ of the output, from the sizes that this kind of state has."""
    sizes = () if state == "vector" else ("K", "V", "H")
    elsewhere = {
        name: (f"{name} does not enter the scale, one number for all tokens and heads", "use K, V, H and numbers")
        for name in ("h", "x", "M", *tensors)
    }
    for name in {"K", "V", "H"}.difference(sizes, tensors):
        elsewhere[name] = (f"a vector state has channels, no heads or widths, so there is no {name}", "write a number")
    expr = context.expression(scalar, Scope("the scale", {s: SIZES[s] for s in sizes}, elsewhere, declared=""))
    return expr if expr is not None and _is_number(context, ("scale",), expr) else None


def default_role(role: str, state: str) -> Expr:
    """q, k or v; 1 for the query and the key of a vector state."""
    if state == "vector" and role != "value":
        return ONE
    name = {"query": "q", "key": "k", "value": "v"}[role]
    return Expr(name, symbol(name))
