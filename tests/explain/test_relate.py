"""Two specs: the same operator under other names, one with inputs set, or neither."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sympy

from recgen.algebra.activations import LogSigmoid
from recgen.algebra.recurrence import Recurrence
from recgen.algebra.statement import recurrence
from recgen.explain.compare import compared
from recgen.explain.relate import Obstacle, inverted, renaming, settings
from recgen.spec import Spec, read_dict
from tests.explain.conftest import Made

Operator = Callable[[str], Made]
RENAMED = {
    "name": "renamed",
    "inputs": {"a": "B T H K", "r": "B T H K", "k": "B T H K", "u": "B T H V"},
    "query": "r",
    "key": "k",
    "value": "u",
    "decay": {"type": "gated", "per": "key", "log": "-softplus(-a) / 16"},
    "scale": "K ** -0.5",
}


def of(spec: Spec) -> Recurrence:
    return recurrence(spec)


def test_other_names_and_spellings_are_seen_through(operator: Operator) -> None:
    """logsigmoid(g) is -softplus(-g): the same values, another expression."""
    found = renaming(operator("gla").found.recurrence, of(read_dict(RENAMED)))
    assert found == {"q": "r", "k": "k", "v": "u", "g": "a"}


@pytest.mark.parametrize(
    "change",
    [
        {"decay": {**RENAMED["decay"], "log": "-softplus(-a) / 8"}},
        {"key": "2 * k"},
        {"normalizer": "sum"},
        {"readout": {"kind": "exclusive", "bonus": "1"}},
    ],
)
def test_another_operator_is_not_the_same_under_any_names(change: dict[str, object], operator: Operator) -> None:
    assert renaming(operator("gla").found.recurrence, of(read_dict({**RENAMED, **change}))) is None


def setting(operator: Operator, a: str, b: str) -> dict[str, str]:
    found = settings(operator(a).found.recurrence, operator(b).found.recurrence)
    assert isinstance(found, list), found
    return {s.tensor.name: str(s.value) for s in found}


def test_a_learned_decay_can_be_that_of_retnet(operator: Operator) -> None:
    assert setting(operator, "learned_decay", "retnet") == {"w": "log(-log(1 - 2**(-h - 5)))"}


def test_a_gate_per_token_can_be_constant_but_not_the_other_way(operator: Operator) -> None:
    assert setting(operator, "rwkv6", "rwkv5") == {"w": "w"}
    found = settings(operator("rwkv5").found.recurrence, operator("rwkv6").found.recurrence)
    assert isinstance(found, Obstacle) and found.quantity == "log_decay" and "varies along B T too" in found.reason


def test_no_decay_is_the_limit_of_an_open_gate(operator: Operator) -> None:
    plain = of(read_dict({"name": "plain", "scale": "K ** -0.5"}))
    found = settings(operator("gla").found.recurrence, plain)
    assert isinstance(found, list) and [(s.tensor.name, s.value) for s in found] == [("g", sympy.oo)]


def test_what_a_parameter_would_have_to_follow_token_by_token_is_refused(operator: Operator) -> None:
    """A_log would have to undo softplus(dt), which differs from token to token."""
    found = settings(operator("mamba2").found.recurrence, operator("retnet").found.recurrence)
    assert isinstance(found, Obstacle) and "A_log has the axes H" in found.reason


def test_a_missing_part_is_named(operator: Operator) -> None:
    found = settings(operator("gla").found.recurrence, operator("mamba2").found.recurrence)
    assert isinstance(found, Obstacle) and found.quantity == "skip"


def test_what_no_value_reaches_is_no_solution() -> None:
    g = sympy.Symbol("g", real=True)
    (obstacle,) = [settings(of(read_dict(spec(0.5))), of(read_dict(spec(1.0))))]
    assert isinstance(obstacle, Obstacle), "a decay of at least exp(-0.5) does not become as strong as exp(-1)"
    assert inverted(LogSigmoid(g) + g, g, sympy.Integer(-1)) is None, "g occurs twice"


def spec(strength: float) -> dict[str, object]:
    """A decay with ℓ between -strength and 0."""
    log = {1.0: "-sigmoid(g)", 0.5: "-sigmoid(g) / 2"}[strength]
    return {"name": "bounded", "inputs": {"g": "B T H"}, "decay": {"type": "gated", "per": "head", "log": log}}


def gated(name: str, log: str, gate: str, *names: str) -> Spec:
    """A decay and an output gate per head, of inputs with these names."""
    inputs = dict.fromkeys(names, "B T H")
    decay = {"type": "gated", "per": "head", "log": log}
    return read_dict({"name": name, "inputs": inputs, "decay": decay, "readout": {"gate": gate}})


def test_names_that_both_have_are_not_mixed_up() -> None:
    """The r of the one is not the r of the other: what decays is fed the other's r, and r itself makes up for it."""
    a, b = gated("a", "logsigmoid(g)", "g * r", "g", "r"), gated("b", "logsigmoid(r)", "s * s", "r", "s")
    found = settings(of(a), of(b))
    assert isinstance(found, list) and {s.tensor.name: str(s.value) for s in found} == {"g": "r", "r": "s**2/r"}
    text = compared(a, b).text()
    assert "g[t] = r[t]" in text and "r[t] = s[t]^2 / r[t]" in text and "a computes what b computes." not in text


def test_what_only_has_another_name_is_given_too() -> None:
    a, b = gated("a", "logsigmoid(g)", "exp(r)", "g", "r"), gated("b", "logsigmoid(u)", "1 + exp(r)", "u", "r")
    found = settings(of(a), of(b))
    assert isinstance(found, list)
    assert {s.tensor.name: str(s.value) for s in found} == {"g": "u", "r": "log(exp(r) + 1)"}
    assert settings(of(b), of(b)) == [], "what keeps its name needs no setting"


def test_swapped_names_are_found_quantity_by_quantity() -> None:
    a, b = gated("a", "logsigmoid(g)", "2 * r", "g", "r"), gated("b", "logsigmoid(r)", "2 * g", "g", "r")
    assert renaming(of(a), of(b)) == {"q": "q", "k": "k", "v": "v", "g": "r", "r": "g"}


def test_the_comparison_says_all_of_it(operator: Operator) -> None:
    text = " ".join(compared(operator("gla").found.spec, read_dict(RENAMED)).text().split())
    assert "are the same mathematics under other names" in text and "g of gla is a of renamed" in text
    assert "From gla to renamed" not in text
    text = compared(operator("gla").found.spec, operator("simple_gla").found.spec).text()
    assert "Only in simple_gla\n    ℓ[t]     = logsigmoid(g[t])" in text
    assert "g[t,m] = 16 logsigmoid(g[t]) - log(1 - exp(16 logsigmoid(g[t])))" in text
    for row in (
        r"factorisation                gla          tree",
        "                             simple_gla   plain",
        "    chunk, gradient   78,700; 320        83,600; 66",
    ):
        assert row in text
    assert "The same in both: parameters" in text


def test_a_spec_and_itself(operator: Operator) -> None:
    spec = operator("gla").found.spec
    text = compared(spec, spec).text()
    assert "gla and gla are the same mathematics." in text and "One step is the same in both." in text
    assert "Only in" not in text
