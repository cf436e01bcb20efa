"""Hypothesis strategies for expressions as a spec's author writes them: any, bounded, positive, never positive.

`names` are those that an expression may use; the strategies know nothing of what they stand for. Any drawn text can be
read where its names are declared, unless it is one of `anything`, which may be as wrong as an author can be.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

Texts = st.SearchStrategy[str]

NUMBERS = ("1", "2", "0.5", "0.1", "3", "1e-3", "1.5", "1 / 3")
SMOOTH = ("tanh({})", "sigmoid({})", "sin({})", "cos({})", "1 / (1 + ({}) ** 2)", "exp(-(({}) ** 2))")
ROUGH = (
    "relu({})",
    "elu({})",
    "silu({})",
    "softplus({})",
    "abs({})",
    "logsigmoid({})",
    "({}) ** 2",
    "-({})",
    "sqrt(1 + ({}) ** 2)",
    "log1p(({}) ** 2)",
    "expm1(tanh({}))",
    "exp(tanh({}))",
)
TWO = (
    "{} + {}",
    "{} - ({})",
    "({}) * ({})",
    "({}) / (2 + abs({}))",
    "min({}, {})",
    "max({}, {})",
    "where({} > {}, 0.5, 0.25)",
    "mod({}, 2 + abs({}))",
)
POSITIVE = (
    "exp(tanh({}))",
    "sigmoid({})",
    "softplus({})",
    "elu({}) + 1",
    "1 + ({}) ** 2",
    "abs({}) + 0.1",
    "exp({} / 4)",
    "1 / (1 + abs({}))",
    "relu({}) + 0.5",
)
DECAYS = (
    "logsigmoid({})",
    "-exp({})",
    "-softplus({})",
    "-(({}) ** 2)",
    "-abs({})",
    "-relu({})",
    "min({}, 0)",
    "-log(1 + softplus({}))",
    "-0.1 * sigmoid({})",
    "-0.02 * sigmoid({})",
    "log(sigmoid({}))",
    "-log1p(exp({}))",
    "-sqrt(softplus({}))",
    "where({} > 0, -0.5, -0.01)",
    "expm1(-abs({}))",
    "logsigmoid(1 + {})",
)
SHARES = ("sigmoid({})", "exp(-softplus({}))", "1 / (1 + exp({}))", "exp(-exp({}))", "0.9 + 0.1 * sigmoid({})")
UNSAFE = ("exp({})", "log({})", "1 / ({})", "sqrt({})", "({}) ** 3", "({}) ** 0.5", "exp(exp({}))", "{} ** {}")


def _filled(templates: Sequence[str], *parts: Texts) -> Texts:
    return st.tuples(st.sampled_from(templates), *parts).map(lambda drawn: drawn[0].format(*drawn[1:]))


def leaves(names: Sequence[str]) -> Texts:
    """A name, or now and then a number."""
    return st.sampled_from([*names, *names, *names, "0.5", "2"]) if names else st.sampled_from(NUMBERS)


def moderate(names: Sequence[str]) -> Texts:
    """An expression that is defined everywhere and grows no faster than a square or two."""
    one = leaves(names)

    def wider(inner: Texts) -> Texts:
        return st.one_of(_filled(SMOOTH, inner), _filled(ROUGH, one), _filled(TWO, inner, one))

    return st.recursive(one, wider, max_leaves=4)


def _using(name: str, others: Sequence[str], outer: Sequence[str]) -> Texts:
    """An expression that depends on `name`, and may depend on the others."""
    plain = st.just(name)
    shifted = _filled(("{} + {}", "{} * {}", "{} - {}", "{} + tanh({})"), plain, leaves(others))
    return _filled(outer, st.one_of(plain, plain, shifted))


def positive(name: str, others: Sequence[str] = ()) -> Texts:
    """Above 0 and of moderate size."""
    return _using(name, others, POSITIVE)


def decreasing(name: str, others: Sequence[str] = ()) -> Texts:
    """A log-decay: at most 0 for whatever the names stand for."""
    return _using(name, others, DECAYS)


def share(name: str, others: Sequence[str] = ()) -> Texts:
    """A decay itself, between 0 and 1."""
    return _using(name, others, SHARES)


def real(name: str, others: Sequence[str] = ()) -> Texts:
    """Of any sign, and depending on `name`."""
    return _using(name, others, (*SMOOTH, *ROUGH, "{}", "{}"))


def anything(names: Sequence[str]) -> Texts:
    """What may well be refused, or have no value for some inputs."""
    return st.one_of(moderate(names), _filled(UNSAFE, leaves(names), leaves(names)), moderate([*names, "undeclared"]))
