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


def test_an_input_called_x_leaves_the_feature_map_its_argument() -> None:
    spec = read_text("name: mine\nvalue: x\ninputs: {x: B T H V}\nfeature_map: elu(x) + 1\n")
    assert spec.key_map.text == "elu(x) + 1" and [t.name for t in spec.inputs] == ["q", "k", "x"]
