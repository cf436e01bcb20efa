"""From a spec to the recurrence it states: its quantities, its states, and what it outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import sympy

from recgen.errors import NotLowered, Problem
from recgen.spec.model import Expr, Normalizer, Spec, Tensor

from .activations import SafeExp
from .bounds import bounds
from .complex_decay import complex_step, gaps, turned
from .complex_values import split
from .recurrence import ONE, SCALE, Quantity, Recurrence, StateRule, axes_of, real
from .stabiliser import READ_SHIFT, SHIFT, Stabiliser, log_factors
from .stable import one_exponential, stable
from .widths import POSITION, Rotate, Twice, changes_width

X = sympy.Symbol("x", real=True)


def _free_symbol(name: str, spec: Spec) -> sympy.Symbol:
    """The symbol of a carried or read value; an input or parameter of the same name keeps it to itself."""
    return real(f"{name}_state" if name in {t.name for t in (*spec.inputs, *spec.params)} else name)


def recurrence(spec: Spec) -> Recurrence:
    """The recurrence a spec states. Raises NotLowered for what the later stages cannot derive yet."""
    refuse_what_is_not_lowered(spec)
    tensors = {t.name: t for t in (*spec.inputs, *spec.params)}
    matrix, normalized = spec.state == "matrix", spec.normalizer.kind != "none"
    held = _stabiliser(spec, tensors)
    on_key, on_value, on_both = _weights(spec.key_weight.tree, tensors) if held is None else (held.weight, ONE, ONE)
    found: dict[str, Quantity] = {}

    def quantity(name: str, axes: str, expr: sympy.Expr, exponent: bool = False) -> sympy.Symbol:
        found[name] = Quantity(real(name), axes, expr, exponent=exponent)
        return real(name)

    frame = complex_step(spec, spec.query.tree, on_key * spec.key.tree)
    if frame is not None:
        queries, keys = turned(frame)
    else:
        queries, features = (_features(*side, spec) for side in _sides(spec))
        keys = on_key * features
    scale = ONE if spec.normalizer.kind == "sum" and not spec.normalizer.eps else SCALE  # a ratio of sums has none
    query = scale * queries
    query = query if query == ONE else quantity("query", "m" if matrix else "", query)
    if matrix:
        key, value = quantity("key", "m", keys), quantity("value", "v", on_value * spec.value.tree)
    elif normalized:
        key, value = on_key * on_value, quantity("value", "v", spec.value.tree)
        key = key if key == ONE else quantity("weight", "v", key)
    else:
        key, value = ONE, quantity("value", "v", on_key * on_value * spec.value.tree)
    if held is None:
        decays = _log_decays(spec.decay.log.tree, tensors, twice=frame is not None)
    else:
        decays = [Quantity(real("log_decay"), held.axes, held.log_decay + SHIFT, True)]
    found |= {q.name: q for q in decays}
    if matrix and on_both != 1:
        value = quantity("weight", "mv", on_both) * value
    carry = sympy.exp(sympy.Add(*(q.symbol for q in decays)))
    S, z, y, n = (_free_symbol(name, spec) for name in "Szyn")
    readout, before = spec.readout, spec.readout.kind == "exclusive"
    own: sympy.Expr = sympy.S.Zero
    if readout.bonus is not None and held is None:
        own = query * quantity("bonus", axes_of(readout.bonus.tree, tensors), readout.bonus.tree) * key
    elif readout.bonus is not None and held is not None:
        own = query * quantity(*(("bonus_key", "m") if matrix else ("bonus_weight", "v")), held.own_weight * features)
    read = query
    if held is not None and held.shifts_read:
        read = query * quantity("read_weight", held.axes, sympy.exp(READ_SHIFT))
    axes = "mv" if matrix else "v"
    states = [StateRule(S, axes, carry * S + key * value, y.name, read * S, "S", own * value, before)]
    output: sympy.Expr = y
    if normalized:
        factor = unit = ONE
        if spec.normalizer.kind == "abs_sum" and not matrix:
            read, own, factor = read / query, own / query, sympy.Abs(query)  # one number, the scale
        if spec.normalizer.kind == "abs_sum":
            read, key, own = (_size(e, found) for e in (read, key, own))
        if held is not None and (spec.normalizer.kind != "sum" or spec.normalizer.eps):
            unit = sympy.exp(quantity("log_unit", held.read_axes, held.log_unit, exponent=True))
        states.append(StateRule(z, axes[0], carry * z + key, n.name, read * z, "z", own, before))
        output = y / _denominator(spec.normalizer, factor * n, unit)
    if readout.gate is not None:
        output = quantity("gate", axes_of(readout.gate.tree, tensors), readout.gate.tree) * output
    if readout.skip is not None:
        output = output + quantity("skip", "v", real(readout.skip) * spec.value.tree)
    return Recurrence(found, tuple(states), output, tensors, held, spec.causal, frame)


def _stabiliser(spec: Spec, tensors: Mapping[str, Tensor]) -> Stabiliser | None:
    """What keeps a weight within range that is given by its logarithm; None where none is."""
    if not spec.log_key_weight:
        return None
    log, weight, bonus = _without_overflow(spec.decay.log.tree), spec.key_weight.tree, spec.readout.bonus
    log_bonus, factor = (None, ONE) if bonus is None else log_factors(bonus.tree)
    return Stabiliser(log, weight, log_bonus, factor, axes_of(log + weight, tensors), spec.readout.kind == "exclusive")


def _sides(spec: Spec) -> tuple[tuple[Expr, Expr], tuple[Expr, Expr]]:
    return (spec.query_map, spec.query), (spec.key_map, spec.key)


def _features(features: Expr, of: Expr, spec: Spec) -> sympy.Expr:
    """The feature map of a query or key, rotated where the spec says so."""
    mapped = features.tree.xreplace({X: of.tree})
    return mapped if spec.rotation is None else Rotate(mapped, spec.rotation.tree, POSITION)


def _denominator(normalizer: Normalizer, n: sympy.Expr, unit: sympy.Expr) -> sympy.Expr:
    """What the read is divided by; `unit` is what 1 is where sums are relative to a maximum."""
    if normalizer.kind == "sum":
        return n + sympy.Rational(repr(normalizer.eps)) * unit
    size = sympy.Abs(n) if normalizer.kind == "max_abs" else n
    return sympy.Max(size, sympy.Rational(repr(normalizer.floor)) * unit)


def _size(product: sympy.Expr, found: dict[str, Quantity]) -> sympy.Expr:
    """The absolute value of a product of quantities, each of them as a quantity of its own where it has a sign."""
    sizes = []
    for factor in (f for f in sympy.Mul.make_args(product) if f.free_symbols):
        q = found[factor.name]
        if not q.expr.is_nonnegative:
            q = found.setdefault(f"{q.name}_size", Quantity(real(f"{q.name}_size"), q.axes, sympy.Abs(q.expr)))
        sizes.append(q.symbol)
    return sympy.Mul(*sizes) if product != 0 else product


def _weights(weight: sympy.Expr, tensors: Mapping[str, Tensor]) -> tuple[sympy.Expr, sympy.Expr, sympy.Expr]:
    """The factors of the weight that go with the key, those that go with the value, and those that vary along both."""
    factors = sympy.Mul.make_args(weight)
    on_value, on_both = ([f for f in factors if axes_of(f, tensors) == axes] for axes in ("v", "mv"))
    on_key = [f for f in factors if f not in on_value and f not in on_both]
    return sympy.Mul(*on_key), sympy.Mul(*on_value), sympy.Mul(*on_both)


def _log_decays(log: sympy.Expr, tensors: Mapping[str, Tensor], twice: bool) -> list[Quantity]:
    """The log-decay as one quantity, or as the sum of one along the keys and one along the values where it is one.

    twice: of a complex one the real part, for the real and for the imaginary features.
    """
    log = _without_overflow(split(log)[0])
    if twice:
        axes = axes_of(log, tensors)
        return [Quantity(real("log_decay"), axes, Twice(log) if axes else log, True)] if log != 0 else []
    if log == 0:
        return []
    if axes_of(log, tensors) != "mv" or not is_separable(log, tensors):
        return [Quantity(real("log_decay"), axes_of(log, tensors), log, True)]
    terms = sympy.Add.make_args(sympy.expand_mul(log))
    on_value = [t for t in terms if axes_of(t, tensors) == "v"]
    return [
        Quantity(real("log_decay_key"), "m", sympy.Add(*(t for t in terms if t not in on_value)), True),
        Quantity(real("log_decay_value"), "v", sympy.Add(*on_value), True),
    ]


def _without_overflow(log: sympy.Expr) -> sympy.Expr:
    """The log-decay with no exponential in it that could become infinite.

    An exponential that is a factor of the log-decay decays everything long before it overflows. One that is an argument
    of another function may not, so there the slope ends where the value does.
    """
    log = one_exponential(stable(log))
    rates = {factor for term in sympy.Add.make_args(log) for factor in sympy.Mul.make_args(term)}

    def bounded(x: sympy.Expr) -> bool:
        try:
            return bounds(x).hi <= SafeExp.MOST
        except (ValueError, NotImplementedError):
            return False

    return log.replace(
        lambda e: isinstance(e, sympy.exp) and e.free_symbols and not bounded(e.args[0]),
        lambda e: SafeExp(e.args[0]) if e in rates else sympy.exp(sympy.Min(e.args[0], SafeExp.MOST)),
    )


def is_separable(log: sympy.Expr, tensors: Mapping[str, Tensor]) -> bool:
    """Whether a log-decay is a sum of terms, none of which varies along keys and values at once."""
    return all(axes_of(t, tensors) != "mv" for t in sympy.Add.make_args(sympy.expand_mul(log)))


def refuse_what_is_not_lowered(spec: Spec) -> None:
    """One clear error for what a spec may say but no stage after this one can derive yet."""
    moving = {t.symbol for t in spec.inputs}
    on_both = _weights(spec.key_weight.tree, {t.name: t for t in (*spec.inputs, *spec.params)})[2]
    problems = [
        *_gaps(spec),
        *(
            (what, spec.decay.log, "today: an angle that is constant in time, plain features and an inclusive readout")
            for what, there in gaps(spec, moving, on_both).items()
            if there
        ),
        *_gaps_of_totals(spec, on_both),
    ]
    reason = "the spec is valid, but not lowered yet"
    if problems:
        raise NotLowered([Problem(expr.at, what, reason, fix) for what, expr, fix in problems])


Gap = tuple[str, Expr, str]  # what is missing, where it is written, what to write today


def _gaps(spec: Spec) -> Iterator[Gap]:
    if spec.rotation is not None and any(changes_width(e.tree) for e in (spec.query_map, spec.key_map)):
        fix = "keep the width of the features, or leave the rotation out"
        yield "a rotation of a feature map that changes the width", spec.rotation, fix


def _gaps_of_totals(spec: Spec, on_both: sympy.Expr) -> Iterator[Gap]:
    """What is not lowered where every token reads every other."""
    if spec.causal:
        return
    if spec.state == "vector":
        yield "causal: false with a vector state", spec.value, "use a matrix state with K = 1"
    elif not {"K", "V"} <= {t.axes[-1] for t in spec.inputs}:
        what = "causal: false without an input of the key's and one of the value's width"
        yield what, spec.key, "let the query or the key depend on an input B T H K, and the value on one B T H V"
    if spec.log_key_weight:
        fix = "write the weight itself, such as key_weight: exp(i)"
        yield "causal: false with a weight given by its logarithm", spec.key_weight, fix
    if on_both != 1:
        fix = "let the weight vary along keys or values alone"
        yield "causal: false with a weight that varies along keys and values at once", spec.key_weight, fix
