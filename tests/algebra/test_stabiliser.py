"""Weights given by their logarithm: what a running maximum makes of a recurrence, and the proof that it is the same."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy

from recgen.algebra.derive import derive
from recgen.algebra.recurrence import Recurrence, real
from recgen.algebra.relative import relative_steps
from recgen.algebra.stabiliser import (
    MAXIMUM,
    READ_MAXIMUM,
    READ_SHIFT,
    SHIFT,
    SMALLEST_UNIT,
    Relative,
    log_factors,
)
from recgen.algebra.statement import recurrence
from recgen.errors import ProofError
from recgen.spec import read_text

HEAD = "inputs: {i: B T H, f: B T H}\ndecay: {type: gated, log: logsigmoid(f)}\nkey_weight: {log: i}\n"
KEY = HEAD.replace("f: B T H", "f: B T H K").replace("gated,", "gated, per: key,")
VECTOR = (
    "state: vector\ninputs: {k: B T D, v: B T D}\nparams: {u: {axes: D, init: 0}}\nkey_weight: {log: k}\n"
    "normalizer: {kind: sum, eps: 0}\nreadout: {kind: exclusive, bonus: 2 * exp(u)}\n"
)
STATEMENTS = {
    "head": HEAD + "normalizer: max_abs",
    "head, exclusive": HEAD + "normalizer: {kind: sum, eps: 1e-3}\nreadout: exclusive",
    "key": KEY + "normalizer: {kind: abs_sum, floor: 2}",
    "key, exclusive with bonus": KEY
    + "normalizer: sum\nreadout: {kind: exclusive, bonus: u}\nparams: {u: {axes: H K, init: 0}}",
    "vector": VECTOR,
    "softmax features": HEAD + "normalizer: abs_sum\nfeature_map: softmax(x)",
}


def stated(text: str) -> Recurrence:
    return recurrence(read_text(f"name: x\n{text}\n"))


def test_a_weight_per_head_needs_one_maximum_per_head() -> None:
    rec = stated(STATEMENTS["head"])
    i, f = real("i"), real("f")
    assert rec.tracks == {"shift": "", "maximum": ""}
    assert (
        rec.quantities["log_decay"].expr - SHIFT
        == recurrence(read_text("name: x\ninputs: {f: B T H}\ndecay: {type: gated, log: logsigmoid(f)}"))
        .quantities["log_decay"]
        .expr
    )
    assert rec.quantities["key"].expr == sympy.exp(Relative(i, MAXIMUM)) * real("k")
    assert rec.quantities["log_unit"].expr == sympy.Max(-MAXIMUM, SMALLEST_UNIT)
    assert rec.stabiliser.log_weight == i and f in rec.stabiliser.log_decay.free_symbols


def test_a_maximum_per_feature_is_read_relative_to_the_largest() -> None:
    rec = stated(STATEMENTS["key"])
    assert rec.tracks == {"shift": "m", "maximum": "m", "read_maximum": "", "read_shift": "m"}
    assert rec.quantities["read_weight"].expr == sympy.exp(READ_SHIFT)


def test_a_positive_bonus_enters_the_maximum_and_its_factor_does_not() -> None:
    rec = stated(STATEMENTS["vector"])
    k, u = real("k"), real("u")
    assert rec.stabiliser.log_bonus == u and rec.stabiliser.own_factor == 2
    assert rec.quantities["bonus_weight"].expr == 2 * sympy.exp(Relative(k, READ_MAXIMUM) + u)
    assert not rec.scaled and "log_unit" not in rec.quantities  # a ratio of two sums has neither scale nor unit


def test_the_logarithm_of_a_product() -> None:
    a, b = sympy.symbols("a b", real=True)
    assert log_factors(3 * b * sympy.exp(a) * sympy.exp(-b)) == (a - b, 3 * b)
    assert log_factors(sympy.Integer(1)) == (0, 1)


@pytest.mark.parametrize("name", STATEMENTS)
def test_any_maxima_give_the_same_recurrence(name: str) -> None:
    (claim,) = relative_steps(stated(STATEMENTS[name]))
    assert "relative to any maxima" in claim


def test_without_a_maximum_there_is_nothing_to_show() -> None:
    assert list(relative_steps(stated("normalizer: sum"))) == []


WRONG = {
    "a weight that is not relative": ("head", "key", {MAXIMUM: sympy.S.Zero}),
    "a decay that does not follow": ("head", "log_decay", {SHIFT: sympy.S.Zero}),
    "a decay that follows the wrong way": ("vector", "log_decay", {SHIFT: -SHIFT}),
    "a floor in units of the state": ("head", "log_unit", {MAXIMUM: sympy.S.Zero}),
    "an own share in units of the state": ("vector", "bonus_weight", {READ_MAXIMUM: MAXIMUM}),
    "a read that stays in units of the state": ("key", "read_weight", {READ_SHIFT: sympy.S.Zero}),
    "a size in other units than its key": ("key", "key_size", {MAXIMUM: READ_MAXIMUM}),
}


@pytest.mark.parametrize("fault", WRONG)
def test_the_proof_finds(fault: str) -> None:
    name, quantity, change = WRONG[fault]
    rec = stated(STATEMENTS[name])
    q = rec.quantities[quantity]
    broken = replace(rec, quantities={**rec.quantities, quantity: replace(q, expr=q.expr.xreplace(change))})
    assert broken.quantities[quantity] != q
    with pytest.raises(ProofError, match="depends on the maximum"):
        list(relative_steps(broken))


@pytest.mark.parametrize("name", ["head", "key, exclusive with bonus", "vector"])
def test_the_derivation_is_proven(name: str) -> None:
    proof = derive(read_text(f"name: x\n{STATEMENTS[name]}\n")).proof
    assert proof.ok and "relative to any maxima" in str(proof)
    assert "no exponential exceeds 1" not in str(proof)  # that is up to the maxima, of which it takes any
