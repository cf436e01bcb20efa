"""Complex values: where they may stand, what is made of them, and what is said where they may not."""

from __future__ import annotations

import pytest
import sympy
from sympy import I, exp

from recgen.spec.model import symbol
from tests.spec.refusals import operator, place, problems

a, b, w, q = map(symbol, ("a", "b", "w", "q"))
PARAMS = "params: {a: {axes: H K, init: 0}, b: {axes: H K, init: 0}, w: {axes: H, init: 0}}\n"
DECAY = "decay: {type: learned, per: key, log: 'exp(w) * complex(-exp(a), b)'}\n"


def test_a_complex_decay_is_a_sum_with_the_imaginary_unit() -> None:
    spec = operator(PARAMS + DECAY)
    assert spec.decay.log.tree == exp(w) * (-exp(a) + I * b)
    assert operator(f"{PARAMS}{DECAY}query: q * complex(a, b) ** 2\n").query.tree == q * (a + I * b) ** 2


def test_query_and_key_may_use_the_complex_log_decay() -> None:
    spec = operator(f"{PARAMS}{DECAY}key: k * expm1(log_decay) / log_decay\n")
    assert spec.key.tree.has(I) and not spec.value.tree.has(I)


def test_what_is_written_is_read_again() -> None:
    from recgen.spec import read_dict

    spec = operator(f"{PARAMS}{DECAY}query: complex(a, b)\nkey: k\n")
    assert read_dict(spec.as_dict()).digest == spec.digest


@pytest.mark.parametrize(
    ("body", "at", "text", "reason"),
    [
        ("query: sigmoid(complex(a, b))\n", (4, 16), "complex(a, b)", "sigmoid takes real values, and this is complex"),
        ("query: complex(complex(a, b), b)\n", (4, 16), "complex(a, b)", "complex takes real values"),
        ("query: where(complex(a, b) > 0, a, b)\n", (4, 14), "complex(a, b)", "a comparison takes real values"),
        ("query: where(a > 0, complex(a, b), b)\n", (4, 21), "complex(a, b)", "where takes real values"),
        ("query: abs(complex(a, b))\n", (4, 12), "complex(a, b)", "abs takes real values"),
        ("query: complex(a, b) ** 0.5\n", (4, 25), "0.5", "whole powers only"),
        ("query: complex(a, b) ** 9\n", (4, 8), "complex(a, b) ** 9", "more than 1000 terms"),
        ("query: exp(complex(a, b) ** 6) * complex(b, a) ** 6\n", (4, 8), "exp(complex", "more than 1000 terms"),
        ("query: a ** complex(a, b)\n", (4, 13), "complex(a, b)", "a complex power of a, which may be negative"),
        ("query: (-2) ** 0.5 * a\n", (4, 16), "0.5", "not a finite real number"),
        ("value: v * complex(a, b)\n", (4, 12), "complex", "the value is real"),
        ("key_weight: log_decay\n", (4, 13), "log_decay", "the log-decay is complex, and the key weight is real"),
        ("readout: {gate: 'complex(a, b)'}\n", (4, 18), "complex", "the output gate is real"),
        ("scale: complex(1, 2)\n", (4, 8), "complex", "the scale is real"),
        ("feature_map: complex(x, x)\n", (4, 14), "complex", "the feature map is real"),
    ],
)
def test_what_is_refused_where_and_why(body: str, at: tuple[int, int], text: str, reason: str) -> None:
    found = problems("name: mine\n" + PARAMS + DECAY + body)[0]
    assert place(found) == at and found.text.startswith(text) and reason in found.reason, found


@pytest.mark.parametrize(
    ("decay", "reason", "fix"),
    [
        ("{type: learned, per: key, log: 'complex(exp(a), b)'}", "the real part of the log-decay can be", "-exp"),
        ("{type: learned, per: head, log: 'complex(-exp(w), w)'}", "turns each key channel", "write per: key"),
        ("{type: learned, per: key, value: 'exp(complex(-exp(a), b))'}", "the decay is real", "the log of a decay"),
        ("{type: learned, per: key, log: '-exp(a) + complex(0, log(b))'}", "it takes the logarithm of b", ""),
        ("{type: learned, per: key, log: '-abs(complex(a, b))'}", "abs takes real values", "whole powers"),
    ],
)
def test_a_decay_that_is_refused(decay: str, reason: str, fix: str) -> None:
    found = problems(f"name: mine\n{PARAMS}decay: {decay}\n")[0]
    assert place(found)[0] == 3 and reason in found.reason and fix in found.fix, found


def test_a_real_decay_has_real_queries() -> None:
    found = problems(f"name: mine\n{PARAMS}query: complex(a, b)\ndecay: {{type: learned, log: -exp(w)}}\n")[0]
    assert found.text == "complex" and "the query is real" in found.reason


def test_the_real_part_alone_is_bounded() -> None:
    decay = "{type: learned, per: key, log: 'complex(-0.1 / (1 + exp(a)), b) * exp(w)', bounds: [-1, 0]}"
    spec = operator(f"{PARAMS}decay: {decay}\n")
    assert spec.decay.bounds == (-1, 0)


def test_initial_values_know_pi_and_the_key_channel() -> None:
    spec = operator("params: {w: {axes: H K, init: pi * k}}\ndecay: {type: learned, per: key, log: -exp(w)}\n")
    assert spec.params[0].init.tree == sympy.pi * sympy.Symbol("k", integer=True, nonnegative=True)
