"""The one-step recurrence of a spec, and what is refused because no closed form across time follows from it."""

from __future__ import annotations

import pytest
import sympy

from recgen.algebra.recurrence import StateRule, affine, linear_read, real
from recgen.algebra.statement import recurrence
from recgen.errors import NotLowered
from recgen.spec import read_text
from tests.algebra.show.catalogue import derived

S, key, value, query, decay = map(real, ("S", "key", "value", "query", "log_decay"))


def rule(update: sympy.Expr, read: sympy.Expr = query * S) -> StateRule:
    return StateRule(S, "mv", update, "y", read)


@pytest.mark.parametrize(
    ("name", "structure", "axes"),
    [
        ("linear_attention", "", None),
        ("retnet", "", ""),
        ("learned_decay", "", ""),
        ("simple_gla", "", ""),
        ("gla", "m", "m"),
    ],
)
def test_the_decay_varies_along_the_axes_its_spec_says(name: str, structure: str, axes: str | None) -> None:
    rec = derived(name, "plain").rec
    assert rec.structure == structure
    assert (rec.quantities["log_decay"].axes if "log_decay" in rec.quantities else None) == axes


def test_without_decay_the_state_is_a_sum() -> None:
    state, normalizer = derived("linear_attention", "plain").rec.states
    assert state.update == S + key * value
    assert normalizer.update == real("z") + key


def test_a_decay_multiplies_every_state() -> None:
    rec = recurrence(read_text("name: x\ndecay: {type: fixed, value: 0.5}\nnormalizer: {kind: sum, eps: 1e-6}"))
    assert [affine(r).log_decay for r in rec.states] == [decay, decay]


def test_the_normalizer_divides_what_is_read() -> None:
    n, y = real("n"), real("y")
    assert derived("linear_attention", "plain").rec.output == y / (n + sympy.Rational(1, 10**6))
    assert derived("gla", "plain").rec.output == y


def test_an_affine_update_splits_into_decay_and_write() -> None:
    step = affine(rule(sympy.exp(decay) * S + key * value))
    assert step.log_decay == decay
    assert set(step.write) == {key, value}


NONLINEAR = [sympy.tanh(S), S**2 + key, sympy.exp(S) + key, 1 / S, S * sympy.Abs(S) + key * value]


@pytest.mark.parametrize("update", NONLINEAR)
def test_an_update_nonlinear_across_time_is_refused(update: sympy.Expr) -> None:
    with pytest.raises(ValueError, match="not linear in S"):
        affine(rule(update))


@pytest.mark.parametrize("read", [S**2, sympy.exp(S), query * S + S**3])
def test_a_read_nonlinear_in_the_state_is_refused(read: sympy.Expr) -> None:
    with pytest.raises(ValueError, match="not linear in S"):
        linear_read(rule(S, read))


def test_what_is_not_lowered_yet_is_said_once_and_in_full() -> None:
    text = "name: x\ncausal: false\nstate: vector\ninputs: {i: B T D}\nkey_weight: {log: i}\nnormalizer: sum"
    with pytest.raises(NotLowered) as caught:
        recurrence(read_text(text, filename="x.yaml"))
    assert [p.text for p in caught.value.problems] == [
        "causal: false with a vector state",
        "causal: false with a weight given by its logarithm",
    ]
    assert "x.yaml:" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "gap"),
    [
        ("state: vector", "a vector state"),
        ("inputs: {g: B T H K V}\nkey_weight: sigmoid(g)", "a weight that varies along keys and values at once"),
        (
            "params: {a: {axes: H K, init: 1}}\nquery: a\nkey: a",
            "without an input of the key's and one of the value's width",
        ),
    ],
)
def test_what_has_no_total_yet_is_refused_with_a_place(text: str, gap: str) -> None:
    with pytest.raises(NotLowered) as caught:
        recurrence(read_text(f"name: x\ncausal: false\n{text}\n", filename="x.yaml"))
    (problem,) = caught.value.problems
    assert problem.text in (f"causal: false with {gap}", f"causal: false {gap}") and problem.location.file == "x.yaml"
    assert str(caught.value).startswith("x.yaml:") and problem.fix


def test_a_recurrence_knows_whether_it_is_causal() -> None:
    assert not recurrence(read_text("name: x\ncausal: false")).causal
    assert recurrence(read_text("name: x")).causal
