"""The space of specs, not a list of them: each drawn one is refused with a place, or proven and right in every form."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, Phase, find, given, seed, settings
from hypothesis.errors import NoSuchExample

from recgen.errors import Location, Problem, SpecError
from recgen.verify import space
from recgen.verify.campaign import campaign, record
from recgen.verify.space import SpecDict, judge, smaller
from recgen.verify.specs import specs

FOUND = {  # by earlier runs, each the smallest of its kind
    "a fixed decay of sizes alone": {"decay": {"type": "fixed", "per": "head", "value": "1 - 1 / K"}},
    "a weight per head on the value alone": {"inputs": {"lam": "B T H"}, "value": "v * lam"},
    "a weight per head on the key alone": {"inputs": {"lam": "B T H"}, "key": "k * lam"},
    "a query whose logarithm vanishes at 0": {"inputs": {"g": "B T H K"}, "query": "log1p(g ** 2)"},
    "a weight that goes in steps": {
        "inputs": {"g": "B T H"},
        "decay": {"type": "gated", "log": "logsigmoid(g)"},
        "key_weight": "where(g > 0, 2, 1)",
    },
    "a gate that goes in steps": {
        "inputs": {"g": "B T H V"},
        "decay": {"type": "gated", "per": "value", "log": "logsigmoid(g)"},
        "readout": {"gate": "where(g > 0, 2, 1)"},
    },
    "a log-decay whose exponential is not its rate": {
        "inputs": {"E": "B T H"},
        "decay": {"type": "gated", "log": "-log1p(exp(E)) / 16"},
    },
    "a log-decay with an exponential inside a logarithm": {
        "inputs": {"E": "B T H"},
        "decay": {"type": "gated", "log": "-log(1 + 0.5 * exp(E)) / 16"},
    },
    "an input called x beside a feature map": {"inputs": {"x": "B T H V"}, "value": "x", "feature_map": "elu(x) + 1"},
    "the index of the head beside an input": {"query": "q * (h + 1)"},
    "a rate three times as steep as its exponent": {
        "inputs": {"S": "B T H K", "g": "B T H V"},
        "decay": {"type": "gated", "per": "key_value", "log": "-S ** 2 + -exp(g * 3)"},
    },
    "a sigmoid that is 1 in float64, whose slope is not 0": {
        "inputs": {"u": "B T H K", "lam": "B T H V"},
        "params": {"C": {"axes": "H", "init": "0.5"}, "dt": {"axes": "H", "init": "loguniform(0.1, 1)"}},
        "decay": {
            "type": "gated",
            "per": "key_value",
            "log": "exp(dt) * (-(u + C) ** 2 + -0.02 * sigmoid(lam + 1e-3))",
        },
    },
    "a sum of nothing but what is loaded": {
        "params": {"C": {"axes": "H V", "init": "0.5"}, "gamma": {"axes": "H V", "init": "0.5"}},
        "value": "C",
        "readout": {"skip": "gamma"},
    },
    "a gate that is the value": {
        "inputs": {"C": "B T H V"},
        "value": "cos(C)",
        "normalizer": "max_abs",
        "readout": {"gate": "cos(C)"},
    },
    "features that are 0 times a query that may be": {
        "inputs": {"S": "B T H K"},
        "query": "q * relu(S - 2)",
        "feature_map": "(relu(x)) * (x)",
        "scale": "K ** -0.5",
    },
    "weights per key by their logarithm, without a decay": {
        "inputs": {"x": "B T H K"},
        "key_weight": {"log": "x"},
        "normalizer": "sum",
    },
    "weights per key by their logarithm, under a weak decay": {
        "inputs": {"x": "B T H K"},
        "key_weight": {"log": "x"},
        "normalizer": "abs_sum",
        "params": {"w": {"axes": "H K", "init": "0"}},
        "decay": {"type": "learned", "per": "key", "log": "-0.01 * sigmoid(w)"},
    },
    "a number per token added to a vector": {"inputs": {"g": "B T H"}, "query": "q + g", "key": "k + g"},
    "a parameter that divides what is 0 beyond the width": {
        "inputs": {"g": "B T H"},
        "params": {"A": {"axes": "K", "init": "2"}},
        "key_weight": "softplus(g) / A ** 2",
    },
    "a normalizer that counts the tokens before each": {
        "state": "vector",
        "normalizer": "sum",
        "readout": {"kind": "exclusive"},
        "inputs": {"a": "B T D"},
        "decay": {"type": "gated", "per": "channel", "log": "-softplus(a)"},
    },
    "one angle for all pairs": {"rotation": "1"},
    "an angle per head": {"params": {"th": {"axes": "H", "init": "1"}}, "rotation": "th"},
    "a complex decay with one angle": {
        "params": {"w": {"axes": "H K", "init": "0"}},
        "decay": {"type": "learned", "per": "key", "log": "complex(-exp(w), 0.5)"},
    },
    "a logarithm of the width": {
        "inputs": {"i": "B T H"},
        "key_weight": {"log": "i * K ** -0.5"},
        "normalizer": "max_abs",
    },
    "sizes over all positions": {"causal": False, "normalizer": {"kind": "abs_sum", "floor": "0.1"}},
    "one number as the decay of all channels": {
        "state": "vector",
        "decay": {"type": "fixed", "per": "channel", "value": "0.9"},
    },
    "a query without tokens": {"params": {"N": {"axes": "H K", "init": 0}}, "query": "N"},
    "a query and a key of all heads without tokens": {
        "inputs": {"g": "B T H K"},
        "params": {"N": {"axes": "K", "init": 0}},
        "query": "softplus(N)",
        "key": "1 + N",
        "decay": {"type": "gated", "per": "key", "log": "logsigmoid(g)"},
    },
    "a key of a scan without tokens": {
        "params": {"N": {"axes": "H K", "init": 0}, "W": {"axes": "H K V", "init": 0}},
        "key": "N",
        "key_weight": "exp(W)",
        "decay": {"type": "learned", "per": "key", "log": "-exp(N)"},
    },
    "inputs of which none has the width of the keys": {
        "inputs": {"g": "B T H"},
        "params": {"N": {"axes": "H K", "init": 0}, "W": {"axes": "H V", "init": 1}},
        "query": "g * N",
        "key": "exp(-g) + N",
        "value": "g * W",
    },
    "features of the whole width under a scanned decay": {
        "inputs": {"g": "B T H K V"},
        "feature_map": "softmax(x)",
        "decay": {"type": "gated", "per": "key_value", "log": "logsigmoid(g)"},
    },
    "learned features of the whole width under a scanned decay": {
        "inputs": {"g": "B T H K V"},
        "params": {"W": {"axes": "H K K", "init": "normal(0, 1)"}},
        "feature_map": {"query": "softmax(matmul(W, x))", "key": "elu(x) + 1"},
        "decay": {"type": "gated", "per": "key_value", "log": "logsigmoid(g)"},
    },
    "a rotation under a scanned decay": {
        "inputs": {"g": "B T H K V"},
        "rotation": "0.5 / (i + 1)",
        "decay": {"type": "gated", "per": "key_value", "log": "logsigmoid(g)"},
    },
    "a rotation at a learned rate": {"params": {"w": {"axes": "H", "init": 1}}, "rotation": "w / (i + 1)"},
    "a gate with an angle": {
        "inputs": {"g": "B T H K"},
        "params": {"w": {"axes": "K", "init": 1}},
        "key": "k / complex(1 + exp(k), w)",
        "decay": {"type": "gated", "per": "key", "log": "complex(logsigmoid(g), w)"},
    },
    "an angle without a decay": {
        "params": {"w": {"axes": "H K", "init": 1}},
        "query": "q * expm1(log_decay)",
        "readout": {"gate": "sigmoid(v)"},
        "decay": {"type": "learned", "per": "key", "log": "complex(0, w)"},
    },
    "an angle per channel and a decay per head": {
        "inputs": {"g": "B T H"},
        "params": {"w": {"axes": "H K", "init": 1}},
        "query": "complex(K ** -0.5, w)",
        "key": "complex(1, 2) * w",
        "key_weight": "sigmoid(g)",
        "decay": {"type": "gated", "per": "key", "log": "complex(logsigmoid(g), w)"},
    },
    "a value without tokens": {
        "params": {"vv": {"axes": "V", "init": "normal(0, 1)"}},
        "value": "vv",
        "normalizer": "max_abs",
    },
    "a value without tokens beside the one read": {
        "inputs": {"g": "B T H"},
        "params": {"vv": {"axes": "H V", "init": 1}},
        "value": "vv",
        "decay": {"type": "gated", "log": "logsigmoid(g)"},
        "readout": {"kind": "exclusive", "bonus": "sigmoid(g)"},
    },
    "a value of a scan without tokens": {
        "inputs": {"g": "B T H K V"},
        "params": {"vv": {"axes": "H V", "init": 1}},
        "value": "tanh(vv)",
        "decay": {"type": "gated", "per": "key_value", "log": "logsigmoid(g)"},
    },
    "channels that all tokens write the same to": {
        "state": "vector",
        "inputs": {"g": "B T D"},
        "params": {"vv": {"axes": "D", "init": 1}},
        "value": "vv",
        "decay": {"type": "gated", "per": "channel", "log": "logsigmoid(g)"},
    },
}
OVER_ALL_POSITIONS = {
    "as it stands": {},
    "a scale and a bounded denominator": {"scale": "K ** -0.5", "normalizer": "max_abs"},
    "a rotation": {"rotation": "0.5 / (i + 1)", "feature_map": "elu(x) + 1", "normalizer": "sum"},
    "features of the whole width": {"feature_map": "concat(1, softmax(x))", "normalizer": "sum"},
    "features with a parameter": {
        "params": {"W": {"axes": "H K K", "init": "normal(0, 1)"}},
        "feature_map": "softmax(matmul(W, x))",
    },
    "a weight per head and one per value": {
        "inputs": {"a": "B T H", "b": "B T H V"},
        "key_weight": "sigmoid(a) * sigmoid(b)",
    },
    "a weight that is learned": {
        "params": {"w": {"axes": "H", "init": "normal(0, 1)"}},
        "key_weight": "exp(w)",
        "normalizer": "max_abs",
    },
    "a gate and a skip connection": {
        "inputs": {"g": "B T H V"},
        "params": {"D": {"axes": "H V", "init": "1"}},
        "normalizer": "sum",
        "feature_map": "elu(x) + 1",
        "readout": {"gate": "sigmoid(g)", "skip": "D"},
    },
    "query and key of one input": {
        "inputs": {"x": "B T H K"},
        "query": "x",
        "key": "x",
        "feature_map": "elu(x) + 1",
        "normalizer": "sum",
    },
    "a parameter in query and key": {
        "params": {"a": {"axes": "H K", "init": "normal(0, 1)"}},
        "query": "q * a",
        "key": "k * a",
    },
}
REFUSED = {
    "nothing that differs from token to token": {
        "state": "vector",
        "params": {"vv": {"axes": "D", "init": 1}},
        "value": "vv",
    },
    "a weight without a slope at 0": {
        "inputs": {"g": "B T H K"},
        "key_weight": "sqrt(1 - exp(log_decay))",
        "decay": {"type": "gated", "per": "key", "log": "-g ** 2"},
    },
    "a weight of 0": {"key_weight": "0"},
    "the logarithm of a weight that may be negative": {"inputs": {"g": "B T H"}, "key_weight": "log(g)"},
    "the root of a gate that may be negative": {"inputs": {"g": "B T H V"}, "readout": {"gate": "sqrt(g)"}},
    "the logarithm of a query": {"query": "log(q)"},
    "a decay in steps": {"inputs": {"g": "B T H"}, "decay": {"type": "gated", "log": "where(g > 0, -0.5, -0.01)"}},
    "more features of the query than of the key": {"feature_map": {"query": "concat(x, -x)", "key": "x"}},
    "a gate for some of the features": {
        "inputs": {"g": "B T H K"},
        "feature_map": "concat(x, -x)",
        "decay": {"type": "gated", "per": "key", "log": "logsigmoid(g)"},
    },
    "a bonus for some of the features": {
        "params": {"u": {"axes": "H K", "init": 0}},
        "feature_map": "concat(x, -x)",
        "readout": {"kind": "exclusive", "bonus": "u"},
    },
    "a rotation of more features than the key has": {"rotation": "1 / (i + 1)", "feature_map": "concat(x, -x)"},
    "an angle that a token chooses": {
        "inputs": {"g": "B T H K"},
        "decay": {"type": "gated", "per": "key", "log": "complex(-exp(g), g)"},
    },
    "a scale of widths that channels do not have": {
        "state": "vector",
        "inputs": {"g": "B T D"},
        "scale": "K ** -0.5",
        "decay": {"type": "gated", "per": "channel", "log": "logsigmoid(g)"},
    },
    "features in steps": {"feature_map": "where(2 > x, 0.5, 0.25)"},
    "a decay over all positions": {"causal": False, "decay": {"type": "fixed", "log": "-1"}},
    "the state before a token over all positions": {"causal": False, "readout": "exclusive"},
    "a sum per channel over all positions": {"causal": False, "state": "vector"},
    "a sum of full weights over all positions": {
        "causal": False,
        "inputs": {"g": "B T H K V"},
        "key_weight": "sigmoid(g)",
    },
}


@given(spec=specs())
@settings(
    max_examples=25,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)  # `smaller` makes a failure small, and in less time
def test_a_drawn_spec_is_refused_with_a_place_or_right_in_every_form(spec: SpecDict) -> None:
    verdict = judge(spec)
    assert verdict.ok, verdict.reasons


@pytest.mark.interpreter
@pytest.mark.parametrize("name", FOUND)
def test_what_was_wrong_once_is_right(name: str) -> None:
    verdict = judge({"name": "found", **FOUND[name]}, triton=True)
    assert verdict.kind == "verified", verdict.reasons


@pytest.mark.interpreter
@pytest.mark.parametrize("name", OVER_ALL_POSITIONS)
def test_what_needs_no_order_is_right_over_all_positions(name: str) -> None:
    verdict = judge({"name": "drawn", "causal": False, **OVER_ALL_POSITIONS[name]}, triton=True)
    assert verdict.kind == "verified", verdict.reasons


def _found(kept: str, number: int) -> SpecDict:
    """One over all positions with this key, nothing if none was drawn: what is drawn varies with what is imported."""
    try:
        return find(
            specs(),
            lambda spec: "causal" in spec and kept in spec and ("decay" in spec) == (kept == "decay"),
            settings=settings(max_examples=1000, database=None, phases=[Phase.generate]),
            random=Random(number),
        )
    except NoSuchExample:
        return {}


@pytest.mark.parametrize("kept", ["decay", "readout", "normalizer", "feature_map"])
def test_specs_over_all_positions_are_drawn(kept: str) -> None:
    """Most of them without what makes no sense there, and some with a decay."""
    found = next(filter(None, (_found(kept, number) for number in range(12))))
    assert found["causal"] == "false"
    assert kept != "readout" or set(found["readout"]) <= {"skip", "gate"}


@pytest.mark.parametrize("name", REFUSED)
def test_what_ended_in_a_crash_once_is_refused(name: str) -> None:
    verdict = judge({"name": "refused", **REFUSED[name]})
    assert verdict.kind in ("refused", "not lowered"), verdict


def test_a_refusal_without_a_place_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: SpecDict) -> None:
        raise SpecError(Problem(Location("<spec>", 1, 1), "", "no reason to be seen"))

    monkeypatch.setattr(space, "read_dict", refuse)
    assert not judge({"name": "mine"}).ok


def test_a_wrong_form_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """The torch forms of a compiler that forgets the sign of a slope."""
    from recgen import compiler

    right = compiler.compile_spec
    monkeypatch.setattr(compiler, "compile_spec", lambda spec: right(spec).replace("d_q = scale * ", "d_q = -scale * "))
    verdict = judge({"name": "mine"})
    assert not verdict.ok and "gradient q" in verdict.reasons[0], verdict


def test_a_failure_is_made_small() -> None:
    spec = {"name": "mine", "inputs": {"g": "B T H", "b": "B T H"}, "key": "k * exp(tanh(g + 2))", "scale": "0.3"}
    small = smaller(spec, lambda s: "tanh" in s.get("key", "") and "g" in s["key"])
    assert list(small) == ["name", "key"]
    assert len(small["key"]) < len(spec["key"])


def test_a_campaign_repeats_itself_and_leaves_a_record() -> None:
    first, second = (campaign(3, 11) for _ in range(2))
    assert [v.spec for v in first] == [v.spec for v in second] and len(first) == 3
    page = record(first, 11, 60)
    assert "--specs 3 --seed 11" in page and "## What the verified ones cover" in page


def test_enough_specs_read_all_positions() -> None:
    drawn: list[SpecDict] = []

    @seed(0)
    @settings(
        max_examples=150, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(specs())
    def one(spec: SpecDict) -> None:
        drawn.append(spec)

    one()
    free = [spec for spec in drawn if spec.get("causal") == "false" and "decay" not in spec]
    assert len(free) >= len(drawn) / 20
