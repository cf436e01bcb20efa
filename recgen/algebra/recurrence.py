"""The recurrence of one head, as sympy expressions of one token: the only statement everything else is derived from.

    S ← update(S)        affine in S, the coefficient free of S: S_t = e^{ℓ_t} S_{t-1} + write_t
    y = read(S)          linear in S, summed over the features
    o = output(y, …)

A quantity is a symbol of these expressions: query, key, value, log_decay and what else a spec brings, each with the
axes it varies along (m features, v values) and its own expression in inputs and parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sympy

from recgen.errors import NotLowered, Problem
from recgen.spec.model import Spec, Tensor

from .stable import Expm1

X = sympy.Symbol("x", real=True)
SCALE = sympy.Symbol("scale", real=True)
AXIS = {"K": "m", "M": "m", "V": "v"}
STRUCTURE = {"head": "", "key": "m", "value": "v", "key_value": "mv", "channel": "v"}


@dataclass(frozen=True)
class Quantity:
    """A per-token value: its symbol in the recurrence, the axes it varies along, and its expression."""

    symbol: sympy.Symbol
    axes: str
    expr: sympy.Expr

    @property
    def name(self) -> str:
        return self.symbol.name


@dataclass(frozen=True)
class StateRule:
    """One carried value: symbol, axes, the update of one token, how the token reads it, and its name in the State."""

    symbol: sympy.Symbol
    axes: str
    update: sympy.Expr
    read_name: str
    read: sympy.Expr
    field: str = ""

    @property
    def name(self) -> str:
        return self.symbol.name


@dataclass(frozen=True)
class Recurrence:
    """The one-step statement. `output` is an expression in the reads' names."""

    quantities: Mapping[str, Quantity]
    states: tuple[StateRule, ...]
    output: sympy.Expr
    tensors: Mapping[str, Tensor]

    @property
    def structure(self) -> str:
        """The axes along which the decay varies inside a head: "", "m", "v" or "mv"."""
        return self.quantities["log_decay"].axes if "log_decay" in self.quantities else ""


def _free_symbol(name: str, spec: Spec) -> sympy.Symbol:
    """The symbol of a carried or read value; an input or parameter of the same name keeps it to itself."""
    return real(f"{name}_state" if name in {t.name for t in (*spec.inputs, *spec.params)} else name)


def real(name: str) -> sympy.Symbol:
    return sympy.Symbol(name, real=True)


def recurrence(spec: Spec) -> Recurrence:
    """The recurrence a spec states. Raises NotLowered for what the later stages cannot derive yet."""
    refuse_what_is_not_lowered(spec)
    query, key, value = real("query"), real("key"), real("value")
    decay = real("log_decay")
    quantities = {
        "query": Quantity(query, "m", SCALE * spec.query_map.tree.xreplace({X: spec.query.tree})),
        "key": Quantity(key, "m", spec.key_weight.tree * spec.key_map.tree.xreplace({X: spec.key.tree})),
        "value": Quantity(value, "v", spec.value.tree),
    }
    carry: sympy.Expr = sympy.Integer(1)
    if spec.decay.log.tree != 0:
        quantities["log_decay"] = Quantity(decay, STRUCTURE[spec.decay.per], spec.decay.log.tree)
        carry = sympy.exp(decay)
    S, z, y, n = (_free_symbol(name, spec) for name in "Szyn")
    states = [StateRule(S, "mv", carry * S + key * value, y.name, query * S, "S")]
    output: sympy.Expr = y
    if spec.normalizer.kind == "sum":
        states.append(StateRule(z, "m", carry * z + key, n.name, query * z, "z"))
        output = y / (n + sympy.Rational(repr(spec.normalizer.eps)))
    return Recurrence(quantities, tuple(states), output, {t.name: t for t in (*spec.inputs, *spec.params)})


@dataclass(frozen=True)
class Affine:
    """state ← e^{log_decay} · state + Π write factors."""

    log_decay: sympy.Expr
    write: tuple[sympy.Expr, ...]


def affine(rule: StateRule) -> Affine:
    """Split an update into its decay and its write. Raises ValueError when it is not affine in the state."""
    write = rule.update.subs(rule.symbol, 0)
    coefficient = sympy.cancel(sympy.expand(rule.update - write) / rule.symbol)
    if coefficient.has(rule.symbol) or write.has(rule.symbol):
        raise ValueError(f"the update {rule.update} is not linear in {rule.symbol}: no closed form across time exists")
    return Affine(sympy.expand_log(sympy.log(coefficient), force=True), sympy.Mul.make_args(write))


def steady_update(rule: StateRule) -> sympy.Expr:
    """The update with e^ℓ S written as S + (e^ℓ − 1) S where the decay is weak.

    The same value, but there the rounding of e^ℓ would compound over time. Where it is strong the sum would cancel.
    """
    step = affine(rule)
    if step.log_decay == 0:
        return rule.update
    state, decay = rule.symbol, step.log_decay
    weak = state + state * Expm1(decay)
    kept = sympy.Piecewise((weak, decay > sympy.Rational(-1, 2)), (state * sympy.exp(decay), True))
    return kept + sympy.Mul(*step.write)


def linear_read(rule: StateRule) -> tuple[sympy.Expr, ...]:
    """The factors that multiply the state in its read. Raises ValueError when the read is not linear in the state."""
    factor = sympy.cancel(rule.read / rule.symbol)
    if factor.has(rule.symbol):
        raise ValueError(f"the read {rule.read} is not linear in {rule.symbol}: no closed form across time exists")
    return sympy.Mul.make_args(factor)


def refuse_what_is_not_lowered(spec: Spec) -> None:
    """One clear error for what a spec may say but no stage after this one can derive yet."""
    gaps = {
        f"a decay per {spec.decay.per}": spec.decay.per not in ("head", "key"),
        "a vector state": spec.state == "vector",
        "rotation": spec.rotation is not None,
        "causal: false": not spec.causal,
        f"the normalizer {spec.normalizer.kind}": spec.normalizer.kind not in ("none", "sum"),
        "an exclusive readout": spec.readout.kind != "inclusive",
        "a bonus, skip or gate in the readout": any((spec.readout.bonus, spec.readout.skip, spec.readout.gate)),
        "a log key weight": spec.log_key_weight,
    }
    found = [what for what, missing in gaps.items() if missing]
    if found:
        raise NotLowered(
            [
                Problem(
                    spec.decay.log.at,
                    what,
                    "the spec is valid, but not lowered yet",
                    "today: decay none, per head or per key; normalizer none or sum; inclusive readout",
                )
                for what in found
            ]
        )
