"""That a decay never makes the state grow: its logarithm is at most 0 for all inputs, parameters and heads."""

from __future__ import annotations

from collections.abc import Mapping

from recgen.algebra.bounds import Interval, bounds, undefined
from recgen.algebra.complex_values import split
from recgen.algebra.defined import fails_everywhere, without_value
from recgen.algebra.smooth import SMOOTHER, without_slope
from recgen.spec.axes import tensors_in
from recgen.spec.context import Context
from recgen.spec.model import Decay, Tensor

_ROUNDING = 1e-12


def check_growth(context: Context, path: tuple[str, ...], decay: Decay, tensors: Mapping[str, Tensor]) -> None:
    """Adds a problem when the log-decay can be positive, or when the declared bounds cannot be right.

    Of a complex one it is the real part that lets the state grow or not.
    """
    log, angle = split(decay.log.tree)
    wrong = undefined(angle) or (undefined(log) if decay.bounds is None else "")
    if wrong:
        context.refuse_at(path, f"the decay has no value there: {wrong}", "write a value that stays between 0 and 1")
        return
    wrong = next(filter(None, map(fails_everywhere, (log, angle))), "")
    if wrong:
        context.refuse_at(path, wrong, "mind that indices start at 0")
        return
    where = next(filter(None, map(without_value, (log, angle))), "")
    if where:
        fix = "keep it away from there, such as value: 0.9 * relu(tanh(g)) + 0.1 for relu(tanh(g))"
        context.refuse_at(path, f"the log-decay is not finite where {where}", fix)
        return
    wrong = without_slope(angle) or without_slope(log)
    if wrong:
        context.refuse_at(path, wrong, SMOOTHER)
        return
    try:
        found = bounds(log)
    except (ValueError, ArithmeticError, TypeError, NotImplementedError, RecursionError) as error:
        if decay.bounds is None:
            fix = "write it in a simpler way, or declare `bounds: [lo, 0]`"
            context.refuse_at(path, f"the range of this log-decay is not known: {error or type(error).__name__}", fix)
        return
    if decay.bounds is not None:
        declared = Interval(*decay.bounds)
        if found.lo > declared.hi + _ROUNDING or found.hi < declared.lo - _ROUNDING:
            reason = f"the declared bounds {declared} cannot hold: the log-decay lies in {found}"
            context.refuse_at(path, reason, f"write bounds: [{found.lo:g}, {min(found.hi, 0.0):g}]")
    elif found.hi > _ROUNDING:
        wanted = "value" if path[-1] == "value" else "log"
        what = "real part of the log-decay" if angle != 0 else "log-decay"
        reason = f"the {what} can be positive, it lies in {found}: the state would grow without limit"
        context.refuse_at(path, reason, _rewrite(decay, wanted, tensors))


def _rewrite(decay: Decay, wanted: str, tensors: Mapping[str, Tensor]) -> str:
    """An expression of the same kind that is never positive."""
    used = [tensor.name for tensor in tensors_in(decay.log, tensors)]
    declare = "declare `bounds: [lo, 0]` if its inputs keep it there"
    if decay.type == "gated":
        example = f"logsigmoid({used[0]})" if wanted == "log" else f"sigmoid({used[0]})"
        return f"write e.g. {wanted}: {example}, or {declare}"
    if decay.type == "learned":
        example = f"-exp({used[0]})" if wanted == "log" else f"exp(-exp({used[0]}))"
        return f"write e.g. {wanted}: {example}, or {declare}"
    return "write a negative number or expression" if wanted == "log" else "write a value above 0, up to 1"
