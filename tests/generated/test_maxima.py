"""Weights given by their logarithm: any finite number is safe, in every form, and changes nothing but the range."""

from __future__ import annotations

import math

import pytest
import torch

import recgen
from tests.generated.catalogue import FORMS, NAIVE, OPERATORS, TORCH_FORMS, Form, each_form, emitted
from tests.generated.equations import published
from tests.generated.inputs import Values, draw, draw_state
from tests.generated.support import assert_matches, call, part, run, truth

LOGARITHMS = {"mlstm": "i", "rwkv4": "k"}
LARGEST = torch.finfo(torch.float32).max
SIZES = {"T": 40, "H": 2, "K": 8, "V": 6}


def wild(name: str, kind: str) -> Values:
    """Inputs whose log-weights are out of every exponential's range. Queries and keys are positive: a normalizer that
    may cross 0 would make anything of a rounding error."""
    values = draw(emitted(name), **SIZES)
    log = values[LOGARITHMS[name]]
    if name == "mlstm":
        values["q"].abs_()
        values["k"].abs_()
    noise = torch.randn(log.shape, generator=torch.Generator().manual_seed(3))
    log.copy_(
        {
            "high": 1000 + noise,
            "low": -1000 + noise,
            "spread": 300 * noise,
            "rising": noise.cumsum(1).abs() * 20,
            "falling": -noise.cumsum(1).abs() * 20,
            "largest": torch.full_like(log, LARGEST),
            "smallest": torch.full_like(log, -LARGEST),
            "both ends": LARGEST * noise.sign(),
        }[kind]
    )
    return values


KINDS = ("high", "low", "spread", "rising", "falling", "largest", "smallest", "both ends")


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        pytest.param(kind, form, id=f"{kind}-{form}", marks=[pytest.mark.interpreter] * form.interpreted)
        for kind in KINDS
        for form in (FORMS if kind in ("spread", "both ends") else TORCH_FORMS)
    ],
)
@pytest.mark.parametrize("name", LOGARITHMS)
def test_any_finite_logarithm_is_safe(name: str, kind: str, form: Form) -> None:
    values = wild(name, kind)
    found = run(emitted(name), form, values)
    assert all(bool(x.isfinite().all()) for x in found.values()), {n: x for n, x in found.items() if n[0] == "d"}
    o, _ = published(name, {n: x.double() for n, x in values.items()})
    assert_matches({"o": found["o"]}, {"o": o})


@pytest.mark.parametrize("form", each_form(FORMS))
@pytest.mark.parametrize("log", [0.0, 110.0, 1e9])
def test_a_query_that_meets_nothing_reads_nothing(log: float, form: Form) -> None:
    """A denominator of exactly 0 is held up by the floor, though e^−m may be less than any number."""
    values = draw(emitted("mlstm"), **SIZES)
    values["i"].fill_(log)
    values["q"][:, 3] = 0
    values["k"][..., 1:] = 0
    values["q"][:, 5, :, 0] = 0  # at right angles to all keys
    found = run(emitted("mlstm"), form, values, loss="output")
    assert all(bool(x.isfinite().all()) for x in found.values())
    assert not found["o"][:, [3, 5]].any() and bool(found["o"][:, 4].any())


@pytest.mark.parametrize("form", each_form(TORCH_FORMS))
@pytest.mark.parametrize(("first", "decay"), [(1e9, 0.5), (1e8, 20.0), (1e6, 1e-3)])
@pytest.mark.parametrize("name", LOGARITHMS)
def test_a_huge_weight_goes_on_to_outweigh_all_others_while_it_decays(
    name: str, first: float, decay: float, form: Form
) -> None:
    values = draw(emitted(name), T=200, H=2, K=4, V=3)
    log, gate = values[LOGARITHMS[name]], values["f" if name == "mlstm" else "w"]
    log.zero_()
    log[:, 0] = first
    gate.fill_(math.log(decay) if name == "rwkv4" else -math.log(math.expm1(decay)))
    found = run(emitted(name), form, values, loss="output")
    assert all(bool(x.isfinite().all()) for x in found.values())
    if name == "rwkv4":  # the average is the first value, seen through each receptance; the first token has its bonus
        receptance = torch.sigmoid(values["r"].double())
        assert_matches({"o": found["o"]}, {"o": receptance * values["v"][:, :1].double()})


@pytest.mark.parametrize("form", each_form(FORMS))
@pytest.mark.parametrize("size", [1e9, 2e9, 1e15])
@pytest.mark.parametrize("name", LOGARITHMS)
def test_a_logarithm_that_is_held_has_no_gradient(name: str, size: float, form: Form) -> None:
    """Beyond ±10⁹ it counts as that, so nothing depends on it any more: the gradient of what is computed is 0."""
    module, values = emitted(name), wild(name, "low")
    log = values[LOGARITHMS[name]]
    log.copy_(size * torch.randint(-1, 2, log.shape, generator=torch.Generator().manual_seed(3)))
    found, expected = run(module, form, values, loss="output"), truth(module, values, loss="output")
    assert_matches(found, expected)
    gradient = found[f"d {LOGARITHMS[name]}"]
    assert not gradient[log.abs() > 1e9].any() and bool(gradient.any())


@pytest.mark.parametrize("form", each_form(FORMS))
@pytest.mark.parametrize("u", [-600.0, -200.0, 90.0, 300.0])
@pytest.mark.parametrize("k", [0.0, 1e8, 1e10, -1e10, LARGEST])
def test_a_bonus_beside_a_huge_key_leaves_the_only_value(k: float, u: float, form: Form) -> None:
    values = draw(emitted("rwkv4"), T=1, V=5)
    values["k"].fill_(k)
    values["u"].fill_(u)
    found = run(emitted("rwkv4"), form, values, loss="output")
    assert all(bool(x.isfinite().all()) for x in found.values())
    expected = torch.sigmoid(values["r"].double()) * values["v"].double()
    assert_matches({"o": found["o"]}, {"o": expected})


@pytest.mark.parametrize("name", LOGARITHMS)
def test_the_published_loop_agrees_in_float64_on_wild_weights(name: str) -> None:
    values = {n: x.double() for n, x in wild(name, "spread").items()}
    state = draw_state(emitted(name), values)
    o, final = published(name, values, tuple(state.values()))
    found = call(emitted(name), NAIVE, values, state)
    assert_matches(found, {"o": o, **dict(zip(emitted(name).STATE, final, strict=True))}, torch.float64)


@pytest.mark.parametrize("form", each_form(FORMS))
@pytest.mark.parametrize("name", LOGARITHMS)
def test_a_constant_more_in_every_logarithm_is_the_maximum_s_alone(name: str, form: Form) -> None:
    """Weights e^512 times as large: the sums, in units of e^m, are e^512 times as large. rwkv4 reads a ratio."""
    values = draw(emitted(name), **SIZES)
    log = values[LOGARITHMS[name]]
    log.copy_((log * 1024).round() / 1024)  # so that float32 holds 512 more of them
    before = call(emitted(name), form, values)
    log.add_(512)
    after = call(emitted(name), form, values)
    units = torch.exp(after["m"].float().double() - 512 - before["m"].float().double())
    assert_matches(
        {n: after[n] * units.reshape(units.shape + (1,) * (after[n].dim() - units.dim())) for n in "Sz"},
        {n: before[n].double() for n in "Sz"},
        note=str(form),
    )
    if name == "rwkv4":
        assert_matches({"o": after["o"]}, {"o": before["o"].double()})


@pytest.mark.parametrize("form", each_form(FORMS))
@pytest.mark.parametrize(
    "normalizer",
    [{"kind": "sum", "eps": 0.01}, {"kind": "max_abs", "floor": 3}, "abs_sum"],
    ids=lambda n: n["kind"] if isinstance(n, dict) else n,
)
def test_constants_of_the_denominator_mean_the_same_with_and_without_a_maximum(normalizer: object, form: Form) -> None:
    """exp(i) as a weight, and i as its logarithm: ε and floor are in the scale of the sums as they are."""
    spec = {
        "name": "weighed",
        "inputs": {"i": "B T H", "g": "B T H K"},
        "normalizer": normalizer,
        "feature_map": "softplus",
        "decay": {"type": "gated", "per": "key", "log": "logsigmoid(g)"},
    }
    plain, held = (recgen.load({**spec, "key_weight": w}) for w in ("exp(i)", {"log": "i"}))
    values = draw(held, **SIZES)
    values["i"].sub_(4)  # sums of about 0.02, so that the constants count
    expected, found = truth(plain, values, loss="output"), run(held, form, values, loss="output")
    same = [n for n in expected if n == "o" or n.startswith("d ")]
    assert_matches({n: found[n] for n in same}, {n: expected[n] for n in same})


@pytest.mark.parametrize("form", each_form(FORMS))
@pytest.mark.parametrize("cut", [1, 17])
@pytest.mark.parametrize("name", LOGARITHMS)
def test_a_split_sequence_carries_its_maximum(name: str, cut: int, form: Form) -> None:
    module, values = emitted(name), wild(name, "spread")
    whole = truth(module, values)
    first = call(module, form, part(module, values, None, cut))
    second = call(module, form, part(module, values, cut, None), {n: first[n] for n in module.STATE})
    o = torch.cat([first["o"], second["o"]], 1)
    assert_matches({"o": o, "m": second["m"]}, {"o": whole["o"], "m": whole["m"]})


@pytest.mark.parametrize("form", [*each_form((NAIVE, *TORCH_FORMS)), "step"])
@pytest.mark.parametrize("first", [1e6, 1e8, 1e9])
@pytest.mark.parametrize("name", LOGARITHMS)
def test_a_huge_weight_decays_from_call_to_call_by_less_than_float32_can_tell(
    name: str, first: float, form: Form | str
) -> None:
    """Token by token: a decay that float32 would round away beside the maximum adds up, though the state is carried."""
    module = emitted(name)
    values = draw(module, T=40, H=1, K=2, V=2)
    decay = 2.7 if first > 1e6 else 0.02  # a third of what neighbouring float32 numbers are apart, or less
    values["f" if name == "mlstm" else "w"].fill_(math.log(decay) if name == "rwkv4" else -math.log(math.expm1(decay)))
    values["v"].fill_(1)
    if name == "mlstm":
        values["q"].fill_(1)
        values["k"].fill_(1)
    values[LOGARITHMS[name]].fill_(-first)[:, 0] = first
    expected, state, outputs = truth(module, values, loss="output"), None, []
    for t in range(40):
        if form == "step":
            token = {n: x[:, t] if n in module.INPUTS else x for n, x in values.items()}
            o, state = module.step(**token, state=state)
            outputs.append(o[:, None])
        else:
            found = call(module, form, part(module, values, t, t + 1), state)
            outputs.append(found.pop("o"))
            state = found
    state = state._asdict() if form == "step" else state
    assert_matches({"o": torch.cat(outputs, 1), "m": state["m"]}, {"o": expected["o"], "m": expected["m"]})
    assert float((state["m"] - expected["m"]).abs().max()) < 0.01


@pytest.mark.parametrize("name", LOGARITHMS)
def test_an_empty_state_may_be_given_with_a_maximum_of_minus_infinity(name: str) -> None:
    module, values = emitted(name), wild(name, "smallest")
    empty = {n: x for n, x in call(module, NAIVE, part(module, values, None, 0)).items() if n != "o"}
    empty["m"] = torch.full_like(empty["m"], -torch.inf)
    found = call(module, Form("chunk", "torch"), values, empty)
    assert_matches({"o": found["o"]}, {"o": call(module, Form("chunk", "torch"), values)["o"].double()})


@pytest.mark.parametrize("form", each_form(FORMS))
@pytest.mark.parametrize("decay", [{}, {"decay": {"type": "fixed", "log": -0.01}}], ids=["none", "weak"])
def test_logarithms_per_key_may_be_far_apart(decay: dict, form: Form) -> None:
    """Every feature has a maximum of its own, which jumps; no factor of a chunk's products may grow with it."""
    module = recgen.load(
        {
            "name": "weighed_keys",
            "inputs": {"i": "B T H K"},
            "key_weight": {"log": "i"},
            "feature_map": "softplus",
            "normalizer": "sum",
            **decay,
        }
    )
    values = draw(module, **SIZES)
    values["i"].mul_(300)
    found = run(module, form, values, loss="output")
    assert all(bool(x.isfinite().all()) for x in found.values())
    assert_matches({"o": found["o"]}, {"o": truth(module, values)["o"]})


def test_the_operators_with_a_maximum_are_in_the_catalogue() -> None:
    assert {name for name in OPERATORS if "m" in emitted(name).STATE} == set(LOGARITHMS)
