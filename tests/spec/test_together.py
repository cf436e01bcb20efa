"""Keys that are right one by one and do not fit each other."""
from __future__ import annotations

import pytest

from recgen.errors import SpecError
from recgen.spec import read_text

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


@pytest.mark.parametrize(("text", "name"), [
    ("decay: {type: gated, per: value, log: 'where(g > 0, -0.5, -0.1)'}", "g"),
    ("value: g\nfeature_map: 'where(x > 0, 1, 0.5)'", "q"),
])
def test_what_gets_no_gradient_from_anything_is_refused(text: str, name: str) -> None:
    with pytest.raises(SpecError, match=f"all that depends on {name} goes in steps"):
        read_text(f"name: mine\ninputs: {{g: B T H V}}\n{text}\n", "mine.yaml")


def test_an_input_called_x_leaves_the_feature_map_its_argument() -> None:
    spec = read_text("name: mine\nvalue: x\ninputs: {x: B T H V}\nfeature_map: elu(x) + 1\n")
    assert spec.key_map.text == "elu(x) + 1" and [t.name for t in spec.inputs] == ["q", "k", "x"]
