"""The derive stage as one call: what it finds, what it chooses, and that nothing unproven leaves it."""

from __future__ import annotations

import math

import pytest

from recgen.algebra import adjoint as adjoints
from recgen.algebra.bounds import Interval
from recgen.algebra.derive import derive, factorisation, log_decay_bounds
from recgen.algebra.proof import ProofError
from recgen.errors import NotLowered
from recgen.resources import catalogue
from recgen.spec import read, read_text

KEY_GATE = "name: x\ninputs: {g: B T H K}\ndecay: {type: gated, per: key, log: '%s'%s}"


@pytest.mark.parametrize("name", ["linear_attention", "retnet", "learned_decay", "simple_gla", "gla"])
def test_the_catalogue_is_derived(name: str) -> None:
    found = derive(read(catalogue()[name]), prove=False)
    assert set(found.adjoint.outputs) == {f"d_{t.name}" for t in found.spec.tensors}
    assert found.factorisation == ("tree" if name == "gla" else "plain")


def test_without_decay_there_are_no_bounds() -> None:
    assert log_decay_bounds(read(catalogue()["linear_attention"])) is None


def test_bounds_come_from_the_expression() -> None:
    interval = log_decay_bounds(read(catalogue()["retnet"]))
    assert interval.lo == pytest.approx(math.log(1 - 1 / 32))
    assert interval.hi == 0


def test_declared_bounds_narrow_what_the_expression_can_reach() -> None:
    spec = read_text(KEY_GATE % ("logsigmoid(g)", ", bounds: [-0.1, 0]"))
    assert log_decay_bounds(spec) == Interval(-0.1, 0.0)
    assert derive(spec, prove=False).factorisation == "plain"


@pytest.mark.parametrize(
    ("log", "chosen"),
    [
        ("logsigmoid(g)", "tree"),
        ("logsigmoid(g) / 16", "tree"),
        ("-sigmoid(g) / 4", "plain"),
        ("-sigmoid(g)", "tree"),
        ("max(logsigmoid(g), -0.25)", "plain"),
    ],
)
def test_a_decay_per_key_is_factored_plainly_only_while_exponents_stay_small(log: str, chosen: str) -> None:
    assert derive(read_text(KEY_GATE % (log, "")), prove=False).factorisation == chosen


def test_a_decay_of_the_whole_head_needs_no_factors() -> None:
    assert factorisation("", Interval(-math.inf, 0.0)) == "plain"


def test_a_derivation_is_proven_unless_the_proof_is_left_out() -> None:
    spec = read(catalogue()["gla"])
    assert derive(spec).proof.ok
    assert derive(spec, prove=False).proof is None


def test_what_is_not_proven_does_not_leave_the_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    right = adjoints.derivative
    monkeypatch.setattr(adjoints, "derivative", lambda expr, x: 2 * right(expr, x))
    with pytest.raises(ProofError, match="gradient d_"):
        derive(read(catalogue()["simple_gla"]))


def test_what_is_not_lowered_yet_is_refused_before_anything_is_derived() -> None:
    with pytest.raises(NotLowered):
        derive(read_text("name: x\nstate: vector\ncausal: false"))


@pytest.mark.parametrize(
    ("log", "per"),
    [
        ("-softplus(g)", "head"),
        ("log(sigmoid(g) * 0.5 + 0.5)", "key"),
        ("-abs(g) / 8", "head"),
        ("where(g > 0, -0.5 * g, 2 * g)", "key"),
    ],
)
def test_gates_of_other_forms_are_proven_too(log: str, per: str) -> None:
    axes = {"head": "B T H", "key": "B T H K"}[per]
    spec = read_text(
        f"name: x\ninputs: {{g: {axes}}}\nfeature_map: {{query: relu(x), key: exp(x) / (1 + exp(x))}}\n"
        f"decay: {{type: gated, per: {per}, log: '{log}'}}\nnormalizer: {{kind: sum, eps: 1e-3}}"
    )
    assert derive(spec).proof.ok


@pytest.mark.parametrize("features", ["(x + 1) ** 100", "exp(40 * x)"])
def test_values_far_beyond_float32_are_proven_like_others(features: str) -> None:
    proven = derive(read_text(f"name: x\nfeature_map: {features}\n")).proof
    assert proven is not None and proven.statements
