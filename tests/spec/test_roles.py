"""Everything beside the decay: roles, feature maps, weight, normalizer, readout, rotation, scale, vector state."""

from __future__ import annotations

import pytest
import sympy

from recgen.spec.model import FEATURE, PAIR, SIZES, Normalizer, symbol
from tests.spec.refusals import only, operator, place, problems


def names(body: str) -> list[tuple[str, str, str]]:
    return [(tensor.name, tensor.layout, tensor.role) for tensor in operator(body).tensors]


def test_q_k_and_v_need_no_declaration() -> None:
    assert names("") == [("q", "B T H K", "input"), ("k", "B T H K", "input"), ("v", "B T H V", "input")]


def test_further_inputs_follow_and_parameters_come_last() -> None:
    body = "params: {w: {axes: H, init: 0}}\ninputs: {g: B T H}\ndecay: {type: gated, log: -softplus(g) * exp(w)}\n"
    assert [name for name, _, _ in names(body)] == ["q", "k", "v", "g", "w"]


def test_declaring_q_k_v_sets_their_order() -> None:
    body = "inputs: {q: B T H K, g: B T H K, v: B T H V}\nkey: 1 - exp(logsigmoid(g))\ndecay: {family: key_gate}\n"
    assert [name for name, _, _ in names(body)] == ["q", "g", "v"]


def test_a_role_that_is_written_needs_no_default_input() -> None:
    body = "query: r\ninputs: {r: B T H K, k: B T H K, v: B T H V}\n"
    spec = operator(body)
    assert [tensor.name for tensor in spec.inputs] == ["r", "k", "v"]
    assert spec.query.tree == symbol("r")
    assert [name for name, _, _ in names("key: k * 2\n")] == ["q", "k", "v"]


@pytest.mark.parametrize(
    ("written", "meaning"),
    [
        ("relu", "relu(x)"),
        ("elu_plus_one", "elu(x) + 1"),
        ("identity", "x"),
        ("square", "x ** 2"),
        ("elu(x) + 1", "elu(x) + 1"),
    ],
)
def test_a_feature_map_has_a_name_or_an_expression(written: str, meaning: str) -> None:
    spec = operator(f"feature_map: {written}\n")
    assert spec.query_map.text == spec.key_map.text == meaning


def test_query_and_key_may_have_maps_of_their_own() -> None:
    spec = operator("feature_map: {key: exp}\n")
    assert spec.query_map.tree == FEATURE
    assert spec.key_map.tree == sympy.exp(FEATURE)


def test_what_the_other_keys_hold() -> None:
    spec = operator(
        "key_weight: {log: e}\ninputs: {e: B T H, r: B T H V}\nnormalizer: max_abs\nscale: K ** -0.5\ncausal: true\n"
        "params: {u: {axes: H K, init: 'normal(0, 1)'}, d: {axes: H, init: 1}}\nrotation: 10000 ** (-2 * i / K)\n"
        "readout: {kind: exclusive, bonus: u, skip: d, gate: sigmoid(r)}\n"
    )
    assert spec.log_key_weight and spec.key_weight.tree == symbol("e")
    assert spec.normalizer == Normalizer("max_abs")
    assert spec.scale.tree == 1 / sympy.sqrt(SIZES["K"])
    assert spec.rotation is not None and spec.rotation.tree == 10000 ** (-2 * PAIR / SIZES["K"])
    assert (spec.readout.kind, spec.readout.bonus.text, spec.readout.skip) == ("exclusive", "u", "d")
    assert spec.readout.gate is not None and spec.readout.gate.text == "sigmoid(r)"


def test_a_vector_state_has_channels() -> None:
    spec = operator(
        "state: vector\ninputs: {r: B T D, k: B T D, v: B T D}\nkey_weight: {log: k}\nnormalizer: sum\n"
        "params: {w: {axes: D, init: -1}, u: {axes: D, init: 0}}\n"
        "decay: {type: learned, per: channel, log: -exp(w)}\n"
        "readout: {kind: exclusive, bonus: u, gate: sigmoid(r)}\n"
    )
    assert spec.state == "vector"
    assert spec.query.tree == spec.key.tree == 1
    assert spec.decay.per == "channel"


def test_a_buffer_is_a_parameter_that_is_not_learned() -> None:
    spec = operator("params: {a: {axes: H, init: 1, buffer: true}}\nreadout: {skip: a}\n")
    assert spec.params[0].role == "buffer"


@pytest.mark.parametrize(
    ("body", "where", "reason", "fix"),
    [
        ("query: v", (2, 8), "the query has the axes B T H K, but it varies by value channel", "one of them with K"),
        ("key: 1", (2, 6), "nothing in it varies by key channel", "one of them with K"),
        ("value: k", (2, 8), "it varies by key channel", "one of them with V"),
        ("query: q * S", (2, 12), "S is the state of the recurrence", ""),
        ("query: qq", (2, 8), "qq is not declared", ""),
        ("feature_map: rellu", (2, 14), "there is no feature map rellu", "did you mean relu?"),
        ("feature_map: 1", (2, 14), "depends on its argument x", "an expression in x"),
        ("feature_map: x * g\ninputs: {g: B T H}", (2, 18), "g is an input, and a feature map sees", "`query:`"),
        ("feature_map: x * w\nparams: {w: {axes: V, init: 1}}", (2, 14), "acts on each key channel", "among H K"),
        ("feature_map: {query: relu, key: rellu}", (2, 33), "there is no feature map rellu", "relu"),
        ("feature_map: x * S", (2, 18), "S is the state", ""),
        ("key_weight: {}", (2, 1), "the weight has no expression", "key_weight: {log: …}"),
        ("key_weight: {value: 1, log: 2}", (2, 1), "both state the weight", "keep one"),
        ("params: {W: {axes: M K, init: 0}}\nfeature_map: matmul(x, W)", (3, 14), "a matrix", "write matmul(W, x)"),
        ("feature_map: w * x", (2, 14), "w is not declared", "declare w under params;"),
        ("scale: w", (2, 8), "w is not declared", "known here: K, V or H"),
        ("scale: q", (2, 8), "q does not enter the scale", "K, V, H"),
        ("scale: h", (2, 8), "h does not enter the scale", "K, V, H"),
        ("scale: 1 / k", (2, 12), "k does not enter the scale", "K, V, H"),
        ("rotation: q", (2, 11), "a rotation depends on the position alone", ""),
        ("readout: {skip: dd}\nparams: {d: {axes: H, init: 0}}", (2, 17), "'dd' is none", "did you mean d?"),
        ("readout: {skip: v}", (2, 17), "skip names a parameter, and 'v' is none", "declare it"),
        ("readout: {skip: d}\nparams: {d: {axes: H K, init: 0}}", (2, 17), "skip has axes among H V", "axes: H V"),
        ("readout: {bonus: u}\nparams: {u: {axes: H K, init: 0}}", (2, 11), "an inclusive readout", "exclusive"),
        ("readout: {gate: sigmoid(q)}", (2, 17), "it varies by key channel: q has the axes B T H K", ""),
        ("causal: false\ndecay: {family: multiscale}", (3, 1), "nothing decays with distance", "remove the decay"),
        ("causal: false\nreadout: exclusive", (3, 10), "there is no state before a token", "remove"),
        ("state: vector\nquery: v", (3, 1), "a vector state has no query", "remove query"),
        ("state: vector\nfeature_map: relu", (3, 1), "a vector state has no feature_map", "remove it"),
        ("state: vector\ndecay: {type: fixed, log: -1}", (3, 1), "decays per: channel", "per: channel"),
        ("readout: {skip: d}\nparams: {d: {axes: D, init: 0}}", (2, 17), "skip has axes among H V", ""),
    ],
)
def test_what_is_refused(body: str, where: tuple[int, int], reason: str, fix: str) -> None:
    problem = problems(f"name: mine\n{body}\n")[0]
    assert reason in problem.reason
    assert fix in problem.fix
    assert place(problem) == where


def test_the_pairs_index_is_not_an_input_too() -> None:
    problem = problems("name: mine\ninputs: {i: B T H}\nkey_weight: i\nrotation: i / K\n")[0]
    assert place(problem) == (2, 10)
    assert "the pair's index" in problem.reason


@pytest.mark.parametrize("text", ["log(x)", "sqrt(x)", "1 + log(x - 1)"])
def test_a_feature_map_is_defined_for_every_x(text: str) -> None:
    assert any("can be negative" in p.reason for p in problems(f"name: a\nfeature_map: {text}\n"))


@pytest.mark.parametrize(
    ("body", "where", "reason"),
    [
        ("feature_map: sqrt(relu(x))", (2, 14), "no finite slope in x where x = 0"),
        ("feature_map: sqrt(relu(x - 1))", (2, 14), "no finite slope in x where x = 0"),
        ("query: q * sqrt(abs(k))", (2, 8), "no finite slope in k where k = 0"),
        ("inputs: {g: B T H}\nkey_weight: sqrt(1 - exp(-g ** 2))", (3, 13), "no finite slope in g where g = 0"),
        ("inputs: {g: B T H V}\nreadout: {gate: abs(g) ** 0.5}", (3, 17), "no finite slope in g where g = 0"),
    ],
)
def test_what_has_a_value_but_no_slope_is_refused(body: str, where: tuple[int, int], reason: str) -> None:
    problem = problems(f"name: mine\n{body}\n")[0]
    assert reason in problem.reason
    assert "sqrt(x + 1e-6)" in problem.fix
    assert place(problem) == where


def test_a_root_that_stays_away_from_0_has_slopes() -> None:
    assert operator("feature_map: sqrt(x ** 2 + 1e-6) + sqrt(relu(x) + 1)\n").query_map.tree.has(sympy.Pow)


def test_an_operator_has_an_input() -> None:
    problem = problems("name: mine\nstate: vector\nvalue: u\nparams: {u: {axes: D, init: 1}}\n")[0]
    assert "without an input" in problem.reason
    assert place(problem) == (3, 1)


@pytest.mark.parametrize("name", ["slots", "in_place", "after", "cuts", "heads", "segment", "start", "time", "S_ends"])
def test_names_that_the_emitted_file_needs_are_kept(name: str) -> None:
    assert "emitted" in only(f"name: mine\ninputs: {{{name}: B T H}}\nkey_weight: exp({name})\n").reason


USES = ["key: 1 - exp(log_decay)", "key_weight: -log_decay", "readout: {gate: exp(log_decay)}"]


@pytest.mark.parametrize("use", USES)
def test_what_uses_a_refused_decay_is_not_refused_for_it(use: str) -> None:
    problem = only(f"name: mine\ninputs: {{g: B T H K}}\n{use}\ndecay: {{type: gated, per: key, log: logsigmod(g)}}\n")
    assert place(problem)[0] == 4
