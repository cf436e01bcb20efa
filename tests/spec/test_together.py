"""Keys that are right one by one and do not fit each other."""

from __future__ import annotations

import pytest

from recgen.errors import SpecError
from recgen.spec import read_dict, read_text

VALUE_GATE = "decay: {type: gated, per: value, log: logsigmoid(g)}"


def problem(text: str):
    with pytest.raises(SpecError) as caught:
        read_text(f"name: mine\ninputs: {{g: B T H V}}\n{text}\n", "mine.yaml")
    (found,) = caught.value.problems
    return found


@pytest.mark.parametrize("normalizer", ["sum", "max_abs"])
@pytest.mark.parametrize(("text", "what"), [(VALUE_GATE, "the decay"), ("key_weight: sigmoid(g)", "the weight")])
def test_no_normalizer_where_values_have_weights_of_their_own(text: str, what: str, normalizer: str) -> None:
    found = problem(f"{text}\nnormalizer: {normalizer}")
    assert found.location.line == 3 and found.location.column == 1
    assert found.reason.startswith(f"{what} varies by value channel, and the normalizer {normalizer}")
    assert "remove the normalizer" in found.fix


def test_query_and_key_need_as_many_features() -> None:
    found = problem("value: g\nfeature_map: {query: 'outer(x, x)', key: softmax(x)}")
    assert found.location.line == 4 and found.reason.startswith("the query has K**2 features and the key K,")
    read_text("name: mine\nfeature_map: {query: 'concat(x, -x)', key: 'concat(exp(x), exp(-x))'}\n")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("decay: {type: gated, per: value, log: 'where(g > 0, -0.5, -0.1)'}", "g"),
        ("value: g\nfeature_map: 'where(x > 0, 1, 0.5)'", "q"),
    ],
)
def test_what_gets_no_gradient_from_anything_is_refused(text: str, name: str) -> None:
    with pytest.raises(SpecError, match=f"all that depends on {name} goes in steps"):
        read_text(f"name: mine\ninputs: {{g: B T H V}}\n{text}\n", "mine.yaml")


def test_an_input_called_x_leaves_the_feature_map_its_argument() -> None:
    spec = read_text("name: mine\nvalue: x\ninputs: {x: B T H V}\nfeature_map: elu(x) + 1\n")
    assert spec.key_map.text == "elu(x) + 1" and [t.name for t in spec.inputs] == ["q", "k", "x"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("decay: {type: gated, per: key, log: logsigmoid(g)}", 4),
        ("key_weight: sigmoid(g)", 4),
        ("key_weight: {log: g}\nnormalizer: sum", 4),
        ("readout: {kind: exclusive, bonus: g}", 4),
    ],
)
def test_a_wider_map_leaves_no_key_channels_to_decay_or_weigh(text: str, line: int) -> None:
    with pytest.raises(SpecError) as caught:
        read_text(f"name: mine\ninputs: {{g: B T H K}}\nfeature_map: concat(exp(x), exp(-x))\n{text}\n")
    (found,) = caught.value.problems
    assert found.location.line == line
    assert found.reason == "this has one value for each of K key channels, and the key has 2*K features"
    read_text(f"name: mine\ninputs: {{g: B T H K}}\nfeature_map: softmax(x)\n{text}\n")


LOG = "key_weight: {log: i}\ninputs: {i: B T H}"


@pytest.mark.parametrize(
    ("text", "line", "reason", "fix"),
    [
        (LOG, 2, "a weight given by its logarithm may exceed what float32 holds", "add `normalizer: sum`"),
        (
            "params: {b: {axes: H, init: 0}}\nkey_weight: {log: b}\nnormalizer: sum",
            3,
            "the same at every token",
            "exp(b)",
        ),
        (f"{LOG}\nnormalizer: {{kind: sum, eps: 0}}", 4, "without eps the denominator must be above 0", "eps: 1e-6"),
        ("state: vector\nnormalizer: {kind: sum, eps: 0}", 3, "without eps the denominator must be above 0", "log: …"),
        (
            "state: vector\ninputs: {i: B T D}\nkey_weight: {log: i}\nnormalizer: {kind: sum, eps: 0}\n"
            "readout: exclusive",
            5,
            "with the token's own among them",
            "a positive bonus such as exp(u)",
        ),
        ("normalizer: {kind: max_abs, eps: 1}", 2, "the normalizer max_abs has no eps", "write floor"),
        ("normalizer: {kind: sum, floor: 1}", 2, "the normalizer sum has no floor", "write eps"),
        ("normalizer: {kind: abs_sum, floor: 0}", 2, "the floor keeps the denominator from being 0", "write floor: 1"),
    ],
)
def test_weights_and_constants_that_leave_no_number(text: str, line: int, reason: str, fix: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_text(f"name: mine\n{text}\n", "mine.yaml")
    (found,) = caught.value.problems
    assert found.location.line == line and reason in found.reason and fix in found.fix


@pytest.mark.parametrize(
    "text",
    [
        f"{LOG}\nnormalizer: {{kind: abs_sum, floor: 0.5}}",
        "normalizer: {kind: max_abs, floor: 2}",
        "state: vector\ninputs: {k: B T D, v: B T D}\nparams: {u: {axes: D, init: k / D}}\nkey_weight: {log: k}\n"
        "normalizer: {kind: sum, eps: 0}\nreadout: {kind: exclusive, bonus: 2 * exp(u)}",
    ],
)
def test_what_is_written_out_is_read_back(text: str) -> None:
    spec = read_text(f"name: mine\n{text}\n")
    assert read_dict(spec.as_dict()) == spec
