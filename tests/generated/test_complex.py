"""s4d, whose decay is complex: a hold of a short time, fast phases, and a frame that no output can see."""

from __future__ import annotations

import math

import pytest
import torch

from tests.generated.catalogue import CHUNK, TORCH_FORMS, Form, emitted, over
from tests.generated.equations import published
from tests.generated.inputs import Values
from tests.generated.support import assert_matches, assert_same_bits, call, relative_error, run, truth

STEPS = (1e-3, 1e-2, 0.1)


def values(*, T: int, K: int, V: int = 2) -> Values:
    """Initial values as published, one step size per head."""
    found = emitted("s4d").sample_inputs(B=1, T=T, H=len(STEPS), K=K, V=V, seed=4)
    return found | {"log_dt": torch.tensor([math.log(step) for step in STEPS])}


def at_position(given: Values, n: float) -> Values:
    """A state that has seen n tokens, all of them 0."""
    H, K = given["A_im"].shape
    return {"S": torch.zeros(1, H, 2 * K, given["x"].shape[-1]), "position": torch.tensor([n])}


@over(["s4d"])
def test_a_long_sequence_with_fast_phases(name: str, form: Form) -> None:
    """64 channels: the fastest turns by 20 radians from token to token, by 4000 in all."""
    given = values(T=200, K=64)
    found = run(emitted(name), form, given)
    assert_matches(found, truth(emitted(name), given))
    o, _ = published(name, {n: x.double() for n, x in given.items()})
    assert relative_error(found["o"], o) <= 1e-5


@pytest.mark.parametrize("rate", [-1.0, -8.0, -14.0, -18.0])
@pytest.mark.parametrize("T", [1, 3, 70])
def test_a_rate_near_0_holds_the_input(rate: float, T: int) -> None:
    """Without a phase, (e^{ΔA} − 1)/A is Δ(1 + ΔA/2 + …): at T = 1 nothing else is left of its gradient."""
    given = values(T=T, K=4)
    given |= {"A_re_log": torch.full_like(given["A_re_log"], rate), "A_im": torch.zeros_like(given["A_im"])}
    found = run(emitted("s4d"), CHUNK, given)
    z = -torch.exp(given["A_re_log"].double() + given["log_dt"].double()[:, None])
    hold = torch.exp(given["log_dt"].double())[:, None] * (torch.special.expm1(z) / z)
    first = 2 * (given["C_re"].double() * hold).sum(-1)[:, None] * given["x"][:, 0].double()
    first = first + given["D"].double()[:, None] * given["x"][:, 0].double()
    assert relative_error(found["o"][:, 0], first) <= 1e-6
    assert_matches(found, truth(emitted("s4d"), given))


def test_a_rate_that_overflows_forgets_at_once() -> None:
    given = values(T=20, K=4)
    given["A_re_log"] = given["A_re_log"].clone()
    given["A_re_log"][:, 1] = 95.0
    found = run(emitted("s4d"), CHUNK, given)
    assert all(bool(x.isfinite().all()) for x in found.values())
    assert_matches(found, truth(emitted("s4d"), given))


@over(["s4d"], TORCH_FORMS)
def test_no_output_depends_on_the_position(name: str, form: Form) -> None:
    """From an empty state, n tokens of 0 change nothing but the frame."""
    given = {n: x.double() for n, x in values(T=50, K=8).items()}
    expected = call(emitted(name), form, given)["o"]
    for n in (1.0, 1e3, 1e6):
        state = {key: x.double() for key, x in at_position(given, n).items()}
        assert relative_error(call(emitted(name), form, given, state)["o"], expected) <= 1e-8, n


def test_phases_stay_right_far_along_in_float32() -> None:
    given, state = values(T=50, K=8), at_position(values(T=50, K=8), 1e6)
    found = run(emitted("s4d"), CHUNK, given, state, loss="output")
    expected = truth(emitted("s4d"), given, state, loss="output")
    assert relative_error(found["o"], expected["o"]) <= 1e-5
    assert relative_error(found["d x"], expected["d x"]) <= 5e-5


def test_without_angles_the_frame_stands_still() -> None:
    given = values(T=50, K=8)
    given["A_im"] = torch.zeros_like(given["A_im"])
    there, here = (call(emitted("s4d"), CHUNK, given, at_position(given, n)) for n in (12.0, 0.0))
    assert_same_bits({n: there[n] for n in ("o", "S")}, {n: here[n] for n in ("o", "S")})


def test_the_layer_starts_as_published() -> None:
    torch.manual_seed(0)
    layer = emitted("s4d").Operator(H=50, K=16)
    step = layer.log_dt.exp()
    assert torch.equal(layer.A_re_log, torch.full((50, 16), math.log(0.5)))
    assert torch.allclose(layer.A_im, math.pi * torch.arange(16.0).expand(50, 16))
    assert 1e-3 <= step.min() < 3e-3 and 0.03 < step.max() <= 0.1 and torch.equal(layer.D, torch.ones(50))
    assert 0.9 < float(layer.C_re.detach().std()) < 1.1 and not torch.equal(layer.C_re, layer.C_im)
