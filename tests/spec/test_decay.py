"""The decay of a spec: its type, where it varies, and that it never makes the state grow."""

from __future__ import annotations

import re

import pytest
import sympy

from recgen.algebra.activations import LogSigmoid
from recgen.spec.model import HEAD, symbol
from tests.spec.refusals import decayed, only, operator, place, problems

g, w = symbol("g"), symbol("w")
GATE_K = "inputs: {g: B T H K}"
GATE_V = "inputs: {g: B T H V}"
PARAM = "params: {w: {axes: H, init: 0}}"


def log_decay(line: str, declared: str = "") -> sympy.Expr:
    return operator(f"decay: {line}\n{declared}\n").decay.log.tree


def test_without_a_decay_its_logarithm_is_zero() -> None:
    decay = operator().decay
    assert (decay.type, decay.per, decay.log.tree) == ("none", "head", 0)
    assert operator("decay: {type: none}").decay == decay


def test_a_value_is_the_exponential_of_the_log() -> None:
    assert log_decay("{type: fixed, value: 0.9}") == sympy.log(sympy.Rational(9, 10))
    assert log_decay("{type: fixed, value: 1}") == 0
    assert log_decay("{type: fixed, value: 1 - 2 ** (-5 - h)}") == sympy.log(1 - 2 ** (-5 - HEAD))
    assert log_decay("{type: gated, value: exp(-exp(g))}", "inputs: {g: B T H}") == -sympy.exp(g)


def test_the_logarithm_of_a_sigmoid_is_one_function() -> None:
    gate = "inputs: {g: B T H}"
    assert log_decay("{type: gated, value: sigmoid(g)}", gate) == LogSigmoid(g)
    assert log_decay("{type: gated, log: log(sigmoid(g)) / 16}", gate) == LogSigmoid(g) / 16


@pytest.mark.parametrize(
    ("expression", "kind", "per", "declared"),
    [
        ("-exp(w)", "learned", "head", PARAM),
        ("-exp(w) * (1 + h / H)", "learned", "head", PARAM),
        ("-exp(w)", "learned", "key", "params: {w: {axes: H K, init: 0}}"),
        ("-exp(w)", "learned", "key", "params: {w: {axes: K, init: 0}}"),
        ("-2 ** (-8 * (h + 1) / H)", "fixed", "head", ""),
        ("-1 / K", "fixed", "head", ""),
        ("-softplus(g) * exp(w)", "gated", "head", "inputs: {g: B T H}\n" + PARAM),
        ("logsigmoid(g)", "gated", "key", GATE_K),
        ("logsigmoid(k)", "gated", "key", ""),
        ("logsigmoid(g)", "gated", "value", GATE_V),
        ("logsigmoid(g) + logsigmoid(r)", "gated", "key_value", "inputs: {g: B T H K, r: B T H V}"),
        ("logsigmoid(g)", "gated", "key_value", "inputs: {g: B T H K V}"),
        ("min(g, 0)", "gated", "head", "inputs: {g: B T H}"),
        ("-abs(g)", "gated", "head", "inputs: {g: B T H}"),
        ("-g ** 2", "gated", "head", "inputs: {g: B T H}"),
        ("where(g < 0, g, 0)", "gated", "head", "inputs: {g: B T H}"),
    ],
)
def test_what_is_accepted(expression: str, kind: str, per: str, declared: str) -> None:
    decay = operator(decayed(expression, kind, per, declared).split("\n", 1)[1]).decay
    assert (decay.type, decay.per) == (kind, per)


@pytest.mark.parametrize(
    ("expression", "kind", "per", "declared", "reason", "fix"),
    [
        # where it varies
        (
            "logsigmoid(g)",
            "gated",
            "head",
            GATE_K,
            "per: head, but it varies by key channel: g has the axes B T H K",
            "write per: key",
        ),
        ("logsigmoid(g)", "gated", "head", GATE_V, "it varies by value channel: g has the axes B T H V", "per: value"),
        ("logsigmoid(g)", "gated", "key", GATE_V, "per: key, but it varies by value channel", "write per: value"),
        ("logsigmoid(g)", "gated", "key", "inputs: {g: B T H}", "nothing in it varies by key channel", "per: head"),
        ("logsigmoid(g)", "gated", "key_value", GATE_K, "nothing in it varies by value channel", "write per: key"),
        ("-0.5", "fixed", "key", "", "nothing in it varies by key channel", "per: head"),
        (
            "-exp(w)",
            "learned",
            "key",
            "params: {w: {axes: H K K, init: 0}}",
            "acts element by element",
            "each axis once",
        ),
        # what each type may use
        ("-exp(w)", "fixed", "head", PARAM, "a fixed decay uses h, H, K and numbers, and w is a parameter", "learned"),
        ("logsigmoid(g)", "fixed", "head", "inputs: {g: B T H}", "and g is an input", "write type: gated"),
        ("logsigmoid(g)", "learned", "head", "inputs: {g: B T H}", "the same for every token", "write type: gated"),
        ("-1", "learned", "head", PARAM, "a learned decay depends on a parameter", "use w, or write type: fixed"),
        ("-1", "learned", "head", "", "a learned decay depends on a parameter", "declare a parameter"),
        ("-exp(w)", "gated", "head", PARAM, "this one depends on no input", "write type: learned"),
        ("g - g - 1", "gated", "head", "inputs: {g: B T H}", "this one depends on no input", "write type: fixed"),
        ("-V", "fixed", "head", "", "V does not enter a decay", "use h, H, K"),
        ("-x", "fixed", "head", "", "x is the argument of a feature map", ""),
        ("-d", "fixed", "head", "", "d is not declared", "known here: h, H or K"),
        # across time
        ("-abs(S)", "gated", "head", "", "S is the state of the recurrence: the recurrence must be linear", ""),
        ("-softplus(z)", "gated", "head", "", "z is the normalizer's state", ""),
        ("-softplus(y)", "gated", "head", "", "y is the unnormalised output", ""),
        ("-softplus(o)", "gated", "head", "", "o is the output of the recurrence", ""),
        # growth
        ("g", "gated", "head", "inputs: {g: B T H}", "can be positive, it lies in (-inf, inf)", "log: logsigmoid(g)"),
        ("sigmoid(g)", "gated", "head", "inputs: {g: B T H}", "it lies in [0, 1]", "log: logsigmoid(g)"),
        ("log(1 + exp(g)) - 1", "gated", "head", "inputs: {g: B T H}", "it lies in [-1, inf)", "logsigmoid(g)"),
        ("w", "learned", "head", PARAM, "it lies in (-inf, inf)", "log: -exp(w)"),
        ("0.1", "fixed", "head", "", "it lies in [0.1, 0.1]", "a negative number"),
        ("log(h)", "fixed", "head", "", "log(h) has no finite value at h = 0", "indices start at 0"),
    ],
)
def test_what_is_refused(expression: str, kind: str, per: str, declared: str, reason: str, fix: str) -> None:
    problem = problems(decayed(expression, kind, per, declared))[0]
    assert reason in problem.reason
    assert fix in problem.fix
    assert problem.location.line == 4
    assert problem.location.column == 8 + _first(problem.text, expression)


def _first(word: str, expression: str) -> int:
    """Where the word stands in the expression, as a word of its own."""
    found = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", expression)
    return found.start() if found else 0


def test_declared_bounds_stand_in_for_a_proof() -> None:
    decay = operator("decay: {type: gated, log: g}\nbounds: [-5, 0]\ninputs: {g: B T H}\n").decay
    assert decay.bounds == (-5.0, 0.0)
    assert operator("decay: {type: gated, log: g, bounds: [-5, 0]}\ninputs: {g: B T H}\n").decay == decay
    value = operator("decay: {type: gated, value: g, bounds: [-.inf, 0]}\ninputs: {g: B T H}\n").decay
    assert value.bounds == (-float("inf"), 0.0)


@pytest.mark.parametrize(
    ("line", "where", "reason"),
    [
        ("decay: {type: fixed, log: -2, bounds: [-1, 0]}", (2, 27), "the declared bounds [-1, 0] cannot hold"),
        ("decay: {type: fixed, log: -2, bounds: [-1, 0.5]}", (2, 39), "above 0 makes the state grow"),
        ("decay: {type: fixed, log: -2, bounds: [.nan, 0]}", (2, 39), "this is the text '.nan'"),
        ("decay: {type: fixed, log: -2, bounds: [-3, 0]}\nbounds: [-3, 0]", (3, 1), "given here and in the decay"),
        ("decay: {type: fixed, log: -2, value: 0.1}", (2, 31), "log and value both state the decay"),
        ("decay: {type: fixed}", (2, 15), "a fixed decay needs its expression"),
        ("decay: {log: -2}", (2, 1), "the decay has no type"),
        ("decay: {type: none, log: -2}", (2, 26), "type: none has no log"),
        ("decay: {type: none, per: head}", (2, 21), "without a decay, per means nothing"),
        ("bounds: [-1, 0]", (2, 1), "without a decay, bounds means nothing"),
        ("decay: {type: fixed, value: 0}", (2, 29), "keeps nothing of the state"),
        ("decay: {type: fixed, value: -0.5}", (2, 29), "keeps nothing of the state"),
        ("decay: {type: fixed, value: 1.5}", (2, 29), "can be positive"),
        ("decay: {type: fixed, log: -2, constants: {tau: 1}}", (2, 43), "constants belong to a family"),
        ("decay: {type: fixed, log: -2, per: channel}", (2, 36), "per: channel belongs to a vector state"),
    ],
)
def test_how_a_decay_may_be_stated(line: str, where: tuple[int, int], reason: str) -> None:
    problem = only(f"name: mine\n{line}\n")
    assert reason in problem.reason
    assert place(problem) == where


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{type: gated, value: tanh(g)}", "which can be negative"),
        ("{type: gated, log: -sqrt(g)}", "which can be negative"),
        ("{type: gated, log: -sqrt(abs(g))}", "no finite slope in g where g = 0"),
        ("{type: fixed, log: -1 / h}", "-1/h has no finite value at h = 0"),
    ],
)
def test_a_decay_without_a_value_somewhere_is_refused(line: str, reason: str) -> None:
    found = problems(f"name: x\ndecay: {line}\n" + ("inputs: {g: B T H}\n" if "gated" in line else ""))
    assert any(reason in p.reason for p in found), found
