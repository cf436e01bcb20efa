"""Errors and what is allowed of them."""

from __future__ import annotations

import math

import pytest
import torch

import recgen
from recgen.spec import read_text
from recgen.verify import Case, Profile
from recgen.verify.check import check
from recgen.verify.errors import Measure, relative_error
from recgen.verify.reference import References, disturbed, rounded_to


def test_the_error_is_relative_to_the_truth() -> None:
    assert relative_error(torch.tensor([3.0, 4.0]), torch.tensor([3.0, 4.5])) == pytest.approx(0.5 / math.hypot(3, 4.5))


def test_nan_and_infinity_never_pass() -> None:
    for bad in (math.nan, math.inf):
        error = relative_error(torch.tensor([1.0, bad]), torch.tensor([1.0, bad]))
        assert not Measure("output", error, 1e9).ok


def test_a_wrong_shape_never_passes() -> None:
    assert math.isnan(relative_error(torch.zeros(2, 1), torch.zeros(2)))


def test_a_zero_must_be_met_by_a_zero() -> None:
    zero = torch.zeros(5)
    assert relative_error(zero, zero) == 0
    assert relative_error(zero + 1e-8, zero) > 1


def test_what_float32_cannot_tell_from_zero_may_be_zero() -> None:
    assert relative_error(torch.zeros(5), torch.full((5,), 1e-37, dtype=torch.float64)) < 1e-5


def test_the_eager_reference_rounds_every_operation() -> None:
    x = torch.full((4,), 1 / 3)
    with rounded_to(torch.bfloat16):
        y = x * 1.0
        z = torch.zeros(4)
        z[1:] += x[1:]
    assert torch.equal(y, x.bfloat16().float())
    assert torch.equal(z[1:], y[1:])
    with rounded_to(torch.bfloat16, kept=frozenset({(4,)})):
        assert torch.equal(x * 1.0, x)


def test_the_eager_reference_in_16_bits_saturates_and_the_one_with_a_float32_state_does_not(profile: Profile) -> None:
    long = Case(T=320, K=1, V=1, values="ones", gate="constant", dtype="bfloat16", frozen=(*"ruxac", "initial_state"))
    references = References(profile)
    assert references.allowance(long, "state S") > 0.15
    assert references.allowance(long, "state S", wide_state=True) < 0.05


def test_an_ill_conditioned_gradient_is_judged_by_what_eager_code_achieves(profile: Profile) -> None:
    """One token: o does not depend on q but through ε, so dq is a difference of nearly equal numbers."""
    references = References(profile)
    case = Case(form="chunk", T=1, K=1, V=1)
    assert check(references, case).ok
    assert references.allowance(case, "gradient r") > 1e-3


def test_a_well_conditioned_result_gets_no_more_than_the_tolerance(profile: Profile) -> None:
    outcome = check(References(profile), Case(form="chunk", T=40, K=8, V=8, initial=True))
    assert {m.allowed for m in outcome.measures} == {1e-5, 5e-5}


TRUE_ZEROS = {
    "one token's share of itself": (
        "causal: false\nfeature_map: softmax(x)\nnormalizer: {kind: abs_sum, floor: 0.01}\n",
        Case(form="chunk", T=1, K=2, V=1, final=False, loss="output"),
        "gradient q",
    ),
    "the slope of a saturated tanh": (
        "state: vector\ninputs: {x: B T D, f: B T D}\nvalue: tanh(x)\n"
        "decay: {type: gated, per: channel, log: logsigmoid(f)}\n",
        Case(form="chunk", T=1, K=1, V=1, values="lowest"),
        "gradient x",
    ),
}


@pytest.mark.parametrize("name", TRUE_ZEROS)
def test_a_gradient_that_is_zero_but_for_rounding_may_be_rounded_otherwise(name: str) -> None:
    body, case, gradient = TRUE_ZEROS[name]
    references = References(Profile.of(recgen.load(read_text(f"name: zero\n{body}"))))
    case = references.profile.fitting(case)
    outcome = check(references, case)
    assert outcome.ok, outcome.reasons()
    truth = references.truth(case)[gradient]
    assert float(truth.abs().max()) < 1e-16
    assert relative_error(truth + 1e-3, truth) > 10 * references.allowance(case, gradient)


def test_what_an_operation_picks_is_not_disturbed() -> None:
    x = torch.tensor([0.1, 0.3, 0.2], dtype=torch.float64, requires_grad=True)
    with disturbed(torch.float32, 0):
        x.amax().backward()
    assert x.grad.count_nonzero() == 1
