"""Checks that span several keys of a spec: whether they fit each other, and whether everything declared is used."""

from __future__ import annotations

from collections.abc import Mapping

import sympy

from recgen.algebra.calculus import derivative
from recgen.algebra.widths import width
from recgen.spec.axes import axes_of, tensors_in, widths_of
from recgen.spec.context import Context
from recgen.spec.model import FEATURE, SIZES, Decay, Expr, Readout, Tensor
from recgen.spec.shape import SpecShape


def check_together(context: Context, shape: SpecShape, tensors: Mapping[str, Tensor], decay: Decay | None) -> None:
    """What single keys cannot show: whether they fit each other."""
    vector, per = shape.state == "vector", decay.per if decay and decay.type != "none" else None
    if per is not None and vector != (per == "channel"):
        reason = "a vector state decays per: channel" if vector else "per: channel belongs to a vector state"
        path = ("decay", "per") if context.node("decay", "per") else ("decay",)
        context.refuse(context.position(*path), context.text(*path), reason, "write per: channel and state: vector")
    for tensor in tensors.values():
        if ("D" in tensor.axes) != vector and (vector or "D" in tensor.axes):
            group = "inputs" if tensor.role == "input" else "params"
            reason = f"{tensor.name} has the axes {tensor.layout}, and a {shape.state} state has "
            reason += "channels D, no heads" if vector else "heads with K and V, no channels D"
            context.refuse_at((group, tensor.name), reason, f"write {_fitting(tensor, vector)}")
    if not any(tensor.role == "input" for tensor in tensors.values()):
        reason = "without an input nothing differs from token to token, and there is no telling how many there are"
        fix = f"declare one and use it, such as inputs: {{x: {'B T D' if vector else 'B T H V'}}}"
        context.refuse(context.key_position("value"), "value", reason, fix)
    for key in ("feature_map", "rotation") if vector else ():
        if context.node(key) is not None:
            context.refuse(context.key_position(key), key, f"a vector state has no {key}", "remove it")
    if not shape.causal:
        reason = "with causal: false every token sees every other, so nothing decays with distance"
        if per is not None:
            context.refuse(context.key_position("decay"), "decay", reason, "remove the decay")
        if shape.readout.kind == "exclusive":
            reason = "with causal: false there is no state before a token"
            context.refuse(context.position("readout"), "", reason, "remove kind: exclusive")


def check_normalizer(
    context: Context, shape: SpecShape, tensors: Mapping[str, Tensor], decay: Decay | None, weight: Expr
) -> None:
    """A normalizer divides by the sum of the weights with which the values enter: all values of a head share them."""
    if shape.normalizer.kind == "none" or shape.state == "vector":
        return
    for key, expr in (("decay", decay.log if decay else None), ("key_weight", weight)):
        if expr is not None and "V" in axes_of(expr, tensors):
            what = {"decay": "the decay", "key_weight": "the weight"}[key]
            reason = f"{what} varies by value channel, and the normalizer {shape.normalizer.kind} divides all of them"
            fix = f"remove the normalizer, or let {what} vary by head and key alone"
            context.refuse(context.key_position(key), key, f"{reason} by one sum", fix)


def check_log_weight(
    context: Context, shape: SpecShape, tensors: Mapping[str, Tensor], log_weight: Expr | None, readout: Readout
) -> None:
    """A weight given by its logarithm may be any size, so only a ratio of sums is sure to be a number; and a ratio
    without eps needs a denominator that is sure not to be 0."""
    kind, is_log = shape.normalizer.kind, log_weight is not None
    if log_weight is not None and not any(tensor.role == "input" for tensor in tensors_in(log_weight, tensors)):
        fix = "write the weight itself, such as key_weight: exp(b), or let its logarithm depend on an input"
        reason = "this logarithm is the same at every token, and no maximum needs to run along with it"
        context.refuse_at(("key_weight", "log"), reason, fix)
    if is_log and kind == "none":
        reason = "a weight given by its logarithm may exceed what float32 holds, and so may a sum without a normalizer"
        fix = "add `normalizer: sum`, or write the weight itself, such as key_weight: exp(i)"
        context.refuse(context.key_position("key_weight", "log"), "log", reason, fix)
    if kind == "sum" and shape.normalizer.eps == 0:
        has_own = shape.readout.kind == "inclusive" or (readout.bonus is not None and readout.bonus.tree.is_positive)
        if not (is_log and shape.state == "vector" and has_own):
            reason = "without eps the denominator must be above 0, and only a sum of weights given by logarithms is"
            fix = "write eps: 1e-6, or give a vector state key_weight: {log: …} and a positive bonus such as exp(u)"
            context.refuse_at(("normalizer", "eps"), f"{reason}, with the token's own among them", fix)


def check_features(
    context: Context,
    tensors: Mapping[str, Tensor],
    query_map: Expr,
    key_map: Expr,
    beside: Mapping[tuple[str, ...], Expr | None],
) -> None:
    """Query and key need as many features as each other: their products are summed over them.

    beside: what is stated per key channel beside them, by its place.
    """
    widths = {**widths_of(tensors), FEATURE: (SIZES["K"],)}
    query, key = (width(features.tree, widths) for features in (query_map, key_map))
    assert query is not None and key is not None  # a map without width has been refused where it is stated
    if sympy.expand(query - key) != 0:
        reason = f"the query has {query} features and the key {key}, and a query meets every feature of a key"
        context.refuse(context.key_position("feature_map"), "feature_map", reason, "give both maps as many features")
    named = next((t for t in tensors.values() if "M" in t.axes), None)
    if named is not None and sympy.expand(key - SIZES["M"]) != 0:
        reason = f"M is the number of features, which is {key} here, and {named.name} has the axes {named.layout}"
        fix = f"write a map with M features, such as matmul({named.name}, x), or give {named.name} other axes"
        context.refuse(context.key_position("feature_map"), "feature_map", reason, fix)
    for path, expr in beside.items():
        own = [a for a in axes_of(expr, tensors) if a in "KM"] if expr is not None else []
        if own and sympy.expand(SIZES[own[0]] - key) != 0:
            reason = f"this has one value for each of {own[0]} key channels, and the key has {key} features"
            fix = "use inputs and parameters without that axis, or a feature map that keeps the width"
            context.refuse_at(path, reason, fix)


def check_used(context: Context, tensors: Mapping[str, Tensor], exprs: list[Expr], named: set[str]) -> None:
    """Refuses inputs and parameters on which nothing depends: they would be arguments without effect."""
    used = {symbol.name for expr in exprs for symbol in expr.tree.free_symbols} | named
    for name, tensor in tensors.items():
        if name not in used:
            group = "inputs" if tensor.role == "input" else "params"
            position = context.key_position(group, name)
            context.refuse(position, name, f"nothing depends on {name}", "remove it, or use it")


def check_gradients(
    context: Context, tensors: Mapping[str, Tensor], exprs: list[Expr], mapped: list[tuple[Expr, Expr]], named: set[str]
) -> None:
    """Refuses inputs and parameters whose gradient is 0 everywhere, because all that depends on them goes in steps.

    mapped: query and key, each with its feature map.
    """
    smooth = {name for expr in exprs for name in tensors if _slopes(expr, tensors[name].symbol)}
    smooth |= {
        name
        for expr, features in mapped
        if _slopes(features, FEATURE)
        for name in tensors
        if _slopes(expr, tensors[name].symbol)
    }
    smooth |= {
        symbol.name
        for _, features in mapped
        for symbol in features.tree.free_symbols - {FEATURE}
        if _slopes(features, symbol)
    } | named
    for name, tensor in tensors.items():
        if name not in smooth:
            group = "inputs" if tensor.role == "input" else "params"
            reason = f"all that depends on {name} goes in steps: its gradient is 0 everywhere"
            fix = f"use it in an expression that changes gradually, such as sigmoid({name})"
            context.refuse(context.key_position(group, name), name, reason, fix)


def _slopes(expr: Expr, symbol: sympy.Symbol) -> bool:
    """Whether the expression has a derivative other than 0; one that is not known counts as such."""
    if symbol not in expr.tree.free_symbols:
        return False
    try:
        return bool(derivative(expr.tree, symbol) != 0)
    except (NotImplementedError, TypeError, ValueError):
        return True


def _fitting(tensor: Tensor, vector: bool) -> str:
    if vector:
        return "B T D" if tensor.role == "input" else "axes: D"
    return "B T H K or B T H V" if tensor.role == "input" else "axes: H, H K or H V"
