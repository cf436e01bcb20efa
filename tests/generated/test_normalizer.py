"""The sum normalizer at and near zero, in every form: φ(x) = elu(x) + 1, o = y / (φ(q)ᵀz + 1e-6)."""

from __future__ import annotations

import pytest
import torch

import recgen
from tests.generated.catalogue import TORCH_FORMS, Form, each_form, emitted
from tests.generated.inputs import draw, draw_state
from tests.generated.support import assert_matches, call, in_float64, relative_error, run, truth


@pytest.mark.parametrize("form", each_form())
@pytest.mark.parametrize("zeroed", ["q", "k", "both"])
def test_features_that_are_all_zero_give_exactly_zero(form: Form, zeroed: str) -> None:
    module = emitted("linear_attention")
    values = draw(module, T=70, H=1)
    for n in ("q", "k") if zeroed == "both" else (zeroed,):
        values[n].fill_(-1000)
    found = run(module, form, values)
    assert not found["o"].any()
    assert all(bool(x.isfinite().all()) for x in found.values())
    assert_matches(found, truth(module, values))


@pytest.mark.parametrize("form", each_form())
@pytest.mark.parametrize("low", ["q", "k", "both"])
def test_features_of_minus_30_keep_their_relative_accuracy(form: Form, low: str) -> None:
    """elu(x) + 1 is exp(x) there, 9e-14: computed as (exp(x) − 1) + 1 it would be 0."""
    module = emitted("linear_attention")
    values = draw(module, T=70, H=1)
    for n in ("q", "k") if low == "both" else (low,):
        values[n].mul_(0.5).sub_(30)
    found = run(module, form, values)
    assert found["o"].any()
    assert_matches(found, truth(module, values))


@pytest.mark.parametrize("form", each_form())
def test_float16_features_near_3e_4(form: Form) -> None:
    """The products are 1e-7, below what float16 holds, beside an ε of 1e-6: both are computed in float32."""
    module = emitted("linear_attention")
    values = draw(module, T=40, H=1, K=4, dtype=torch.float16)
    for n in ("q", "k"):
        values[n].mul_(0.1).sub_(8.1)
    found = call(module, form, values)
    expected = call(module, Form("naive", "torch"), in_float64(values))
    assert found["o"].dtype == torch.float16
    assert relative_error(found["o"], expected["o"]) <= 2**-10
    assert relative_error(found["z"], expected["z"]) <= 2**-10


@pytest.mark.parametrize("form", each_form())
@pytest.mark.parametrize("size", [20.0, 60.0])
@pytest.mark.parametrize("feature_map", ["softmax(x)", "softmax(matmul(W, x))", "concat(softmax(x), softmax(-2 * x))"])
def test_a_softmax_that_has_all_but_decided(feature_map: str, size: float, form: Form) -> None:
    """Where one feature outweighs all others, its slope is what they leave of 1, and every key is alike here. So no
    output depends on the query: the gradient of that is what rounding leaves of 0."""
    params = {"W": {"axes": "H K K", "init": "normal(0, 1) / K ** 0.5"}} if "W" in feature_map else {}
    module = recgen.load({"name": "decided", "feature_map": feature_map, "normalizer": "sum", "params": params})
    values = draw(module, T=33, H=2, K=6, V=4)
    values["q"].mul_(size)
    values["k"].copy_(size * values["k"][:, :1].expand_as(values["k"]))
    expected = truth(module, values)
    assert_matches(run(module, form, values), {n: x for n, x in expected.items() if n != "d q"})


@pytest.mark.parametrize("form", each_form(TORCH_FORMS))
def test_a_denominator_that_crosses_zero_in_float64(form: Form) -> None:
    """A carried z may be negative, so that φ(q)ᵀz changes sign on the way; the forms still agree."""
    module = emitted("linear_attention")
    values = draw(module, T=40, H=2, K=6, dtype=torch.float64)
    state = draw_state(module, values)
    state["z"] = -20 * state["z"]
    expected = truth(module, values, state)
    found = run(module, form, values, state)
    for name, x in expected.items():
        assert relative_error(found[name], x) <= 1e-9, name


@pytest.mark.parametrize("form", each_form())
def test_a_denominator_that_crosses_zero_stays_finite(form: Form) -> None:
    module = emitted("linear_attention")
    values = draw(module, T=40, H=1, K=6)
    state = draw_state(module, values)
    state["z"] = -20 * state["z"]
    assert all(bool(x.isfinite().all()) for x in run(module, form, values, state).values())


@pytest.mark.parametrize("form", each_form())
def test_equal_values_are_their_own_mean(form: Form) -> None:
    """Whatever the weights are, normalised they sum to 1 (up to ε)."""
    module = emitted("linear_attention")
    values = draw(module, T=100, H=1)
    values["v"].copy_(values["v"][:, :1].expand_as(values["v"]))
    o = call(module, form, values)["o"]
    torch.testing.assert_close(o, values["v"], rtol=1e-4, atol=1e-5)
