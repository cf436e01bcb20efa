"""Every normalizer with every structure that leaves it well defined, with and without a running maximum."""

from __future__ import annotations

import pytest

import recgen
from tests.generated.catalogue import FORMS, Form, each_form
from tests.generated.inputs import draw, draw_state
from tests.generated.support import assert_matches, run, truth

GATE = {"inputs": {"g": "B T H"}, "decay": {"type": "gated", "log": "logsigmoid(g)"}}
KEY_GATE = {"inputs": {"g": "B T H K"}, "decay": {"type": "gated", "per": "key", "log": "logsigmoid(g)"}}
CHANNELS = {"state": "vector", "decay": {"type": "gated", "per": "channel", "log": "logsigmoid(g)"}}
BONUS = {"params": {"u": {"axes": "H K", "init": "1"}}, "readout": {"kind": "exclusive", "bonus": "u"}}


def weighed(spec: dict, axes: str, log: str) -> dict:
    """The spec with one more input, the logarithm of the weight."""
    return {**spec, "inputs": {**spec.get("inputs", {}), "i": axes}, "key_weight": {"log": log}}


SPECS = {
    "abs_sum under a key gate": {**KEY_GATE, "normalizer": "abs_sum"},
    "abs_sum, exclusive with a bonus of any sign": {**GATE, **BONUS, "normalizer": {"kind": "abs_sum", "floor": 0.5}},
    "abs_sum of rotated queries and keys": {**GATE, "rotation": "0.3 / (i + 1)", "normalizer": "abs_sum"},
    "abs_sum of features that grow": {"feature_map": "concat(x, outer(x, x))", "normalizer": "abs_sum"},
    "max_abs with another floor": {**GATE, "normalizer": {"kind": "max_abs", "floor": 0.1}},
    "sum of a vector state without weights": {**CHANNELS, "inputs": {"g": "B T D"}, "normalizer": "sum"},
    "sum of a vector state that does not decay": {"state": "vector", "normalizer": "sum"},
    "abs_sum of a vector state, exclusive": {
        **CHANNELS,
        "inputs": {"g": "B T D", "w": "B T D"},
        "key_weight": "tanh(w)",
        "normalizer": "abs_sum",
        "readout": {"kind": "exclusive"},
    },
    "max_abs of a vector state with a bonus": {
        **CHANNELS,
        "inputs": {"g": "B T D"},
        "params": {"u": {"axes": "D", "init": "1"}},
        "normalizer": "max_abs",
        "key_weight": "sigmoid(g)",
        "readout": {"kind": "exclusive", "bonus": "u"},
    },
    "logarithms per key": weighed({**GATE, "feature_map": "softplus", "normalizer": "sum"}, "B T H K", "i"),
    "logarithms under a key gate": weighed({**KEY_GATE, "normalizer": "abs_sum"}, "B T H", "i"),
    "logarithms read before the update": weighed(
        {"feature_map": "softplus", "normalizer": "sum", "readout": {"kind": "exclusive"}}, "B T H", "2 * i"
    ),
    "logarithms with a bonus per key": weighed(
        {**GATE, **BONUS, "readout": {"kind": "exclusive", "bonus": "2 * exp(u)"}, "normalizer": "abs_sum"},
        "B T H",
        "i",
    ),
    "logarithms of softmax features": weighed({**GATE, "feature_map": "softmax(x)", "normalizer": "sum"}, "B T H", "i"),
    "logarithms of a vector state that does not decay": weighed(
        {"state": "vector", "normalizer": {"kind": "sum", "eps": 0}}, "B T D", "i"
    ),
}


@pytest.fixture(scope="module", params=SPECS, ids=lambda name: name.replace(" ", "-"))
def module(request: pytest.FixtureRequest):
    return recgen.load({"name": "normalized", **SPECS[request.param]})


@pytest.mark.parametrize("form", each_form(FORMS))
def test_every_form_equals_naive(module, form: Form) -> None:
    values = draw(module, T=20 if form.interpreted else 40, K=6, V=4)
    state = draw_state(module, values)
    chunk = {"chunk_size": 16} if form.name == "chunk" else {}
    assert_matches(run(module, form, values, state, **chunk), truth(module, values, state))


def test_it_is_what_its_own_recurrence_says(module) -> None:
    """`naive` token by token through `step` gives the same: all that is carried is in the state."""
    values = draw(module, T=6, K=6, V=4)
    token = {n: x[:, 0] if n in module.INPUTS else x for n, x in values.items()}
    _, state = module.step(**token)
    for t in range(1, 6):
        o, state = module.step(**{n: x[:, t] if n in module.INPUTS else x for n, x in values.items()}, state=state)
    whole, final = module.naive(**{n: x.double() for n, x in values.items()}, output_final_state=True)
    assert_matches({"o": o, **state._asdict()}, {"o": whole[:, -1], **final._asdict()})
