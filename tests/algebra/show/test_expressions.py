"""Expressions are written as a person would write them."""

from __future__ import annotations

import re

import pytest
import sympy

from recgen.algebra.activations import Activation, SafeExp
from recgen.algebra.show.expressions import written
from recgen.algebra.show.notation import STYLES
from recgen.spec import read_text

EXPRESSIONS = [
    ("logsigmoid(g) / 16", "logsigmoid(g)/16", r"\frac{\operatorname{logsigmoid}\left( g \right)}{16}"),
    ("log(1 - 2 ** (-5 - h))", "log(1 - 2^(-h - 5))", r"\log\left( 1 - 2^{-h - 5} \right)"),
    ("-exp(w)", "-exp(w)", "-e^{w}"),
    ("a / (b * c)", "a/(b c)", r"\frac{a}{b \, c}"),
    ("-(a ** 2)", "-a^2", "-a^{2}"),
    ("(-a) ** 3 * b", "-b a^3", r"-b \, a^{3}"),
    ("a - (b - c)", "a + c - b", "a + c - b"),
    ("b * (a + 1)", "b (a + 1)", r"b \, \left( a + 1 \right)"),
    ("a ** -2", "1/a^2", r"\frac{1}{a^{2}}"),
    ("sqrt(sigmoid(a))", "sqrt(sigmoid(a))", r"\sqrt{\operatorname{sigmoid}\left( a \right)}"),
    ("abs(gamma) + 1e-6", "|gamma| + 1e-6", r"\left| \gamma \right| + 10^{-6}"),
    ("max(a, 0)", "max(a, 0)", r"\max\left( a, 0 \right)"),
    (
        "where(a > 0, a, b)",
        "(a where a > 0, b otherwise)",
        r"\begin{cases} a & a > 0 \\ b & \mathrm{otherwise} \end{cases}",
    ),
    ("a / 3", "a/3", r"\frac{a}{3}"),
    ("0.1 * a", "a/10", r"\frac{a}{10}"),
]


@pytest.mark.parametrize(("source", "text", "latex"), EXPRESSIONS, ids=[source for source, _, _ in EXPRESSIONS])
def test_expressions_are_written_as_one_would(source: str, text: str, latex: str) -> None:
    used = [n for n in ("a", "b", "c", "g", "w", "gamma") if re.search(rf"\b{n}\b", source)]
    params = "".join(f"  {n}: {{axes: H, init: 1}}\n" for n in used)
    spec = read_text(f"name: t\nkey_weight: {source}\n" + (f"params:\n{params}" if params else ""))
    tree = spec.key_weight.tree
    assert str(written(tree, STYLES["text"])) == text
    assert str(written(tree, STYLES["latex"])) == latex


def test_every_activation_has_a_notation() -> None:
    x = sympy.Symbol("x", real=True)
    for activation in (a for a in Activation.__subclasses__() if 1 in a.nargs):
        name = "exp" if activation is SafeExp else activation.__name__.lower()
        assert str(written(activation(x), STYLES["text"])) == f"{name}(x)"
