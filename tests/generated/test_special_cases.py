"""γ·1 and 1 are special cases: operators that must coincide do, in every form."""

from __future__ import annotations

import functools
from types import ModuleType

import pytest
import torch

import recgen
from tests.generated.catalogue import GATES, NAIVE, Form, axes, each_form, emitted, over, profile
from tests.generated.inputs import Values, draw, draw_state, without_decay
from tests.generated.support import assert_matches, call, in_float64, relative_error, run, truth

RETNET_OF_ONE = {"name": "retnet_of_one", "decay": {"type": "fixed", "value": 1}, "scale": "K ** -0.5"}
PLAIN = {"name": "plain", "scale": "K ** -0.5"}


TEMPERATURE = {"simple_gla": 1, "gated_retention": 16, "gla": 16, "gla_value": 16, "gla_outer": 8}
"""ℓ = logsigmoid(gate) / this, where all gates are alike."""


def gate_of(log_sigmoid: torch.Tensor) -> torch.Tensor:
    """The x with logsigmoid(x) = this, below 0."""
    return log_sigmoid - torch.log(-torch.expm1(log_sigmoid))


@functools.cache
def compiled(kind: str, gamma: float = 1.0) -> ModuleType:
    spec = {
        "one": RETNET_OF_ONE,
        "plain": PLAIN,
        "fixed": {"name": "fixed", "decay": {"type": "fixed", "value": gamma}},
    }[kind]
    return recgen.load(spec)


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECGEN_CACHE", str(tmp_path_factory.getbasetemp() / "recgen-cache"))


@pytest.mark.parametrize("form", each_form())
def test_retnet_with_gamma_1_is_unnormalised_linear_attention(form: Form) -> None:
    values = draw(compiled("plain"), T=70, H=2)
    state = draw_state(compiled("plain"), values)
    assert_matches(run(compiled("one"), form, values, state), truth(compiled("plain"), values, state))
    assert_matches(run(compiled("plain"), form, values, state), truth(compiled("one"), values, state))


@over(["learned_decay", "gated_retention", *GATES])
def test_a_constant_gate_is_retnet(name: str, form: Form) -> None:
    """The gates, or the parameter, that give γ_h = 1 − 2^(−5−h)."""
    log_decay = torch.log(1 - 2.0 ** (-5 - torch.arange(3, dtype=torch.float64)))
    values = draw(emitted(name), T=130, H=3)
    for n in profile(emitted(name)).drivers:
        wanted = torch.log(-log_decay) if name == "learned_decay" else gate_of(log_decay * TEMPERATURE[name])
        values[n].copy_(wanted.reshape(-1, *[1] * (len(axes(emitted(name))[n]) - 3)).expand_as(values[n]))
    shared = {n: values[n] for n in "qkv"}
    state = draw_state(emitted(name), values)
    expected = truth(emitted("retnet"), shared, state)
    found = run(emitted(name), form, values, state)
    assert_matches({n: found[n] for n in expected}, expected)


@pytest.mark.parametrize("form", each_form())
def test_a_gate_that_is_the_same_for_all_channels_is_a_scalar_gate(form: Form) -> None:
    values = draw(emitted("gla"), T=70, H=2)
    scalar = torch.nn.functional.logsigmoid(torch.randn(1, 70, 2, generator=torch.Generator().manual_seed(3)).double())
    of_head = {**values, "g": gate_of(scalar).float()}
    of_channel = {**values, "g": gate_of(16 * scalar)[..., None].expand_as(values["g"]).float()}
    expected = call(emitted("simple_gla"), NAIVE, in_float64(of_head))
    assert_matches(call(emitted("gla"), form, of_channel), expected)


@over(GATES)
def test_an_open_gate_is_retnet_with_gamma_1(name: str, form: Form) -> None:
    values = without_decay(emitted(name), draw(emitted(name), T=70, H=2), 1e4)
    shared: Values = {n: values[n] for n in "qkv"}
    expected = truth(compiled("one"), shared)
    found = run(emitted(name), form, values)
    assert_matches({n: found[n] for n in expected}, expected)
    assert not any(found[f"d {n}"].any() for n in profile(emitted(name)).gates)


@pytest.mark.parametrize("form", [pytest.param(NAIVE, id="naive-torch"), *each_form()])
@pytest.mark.parametrize(("gamma", "expected"), [(0.9, [1, 1.9, 2.71]), (0.5, [1, 1.5, 1.75]), (1.0, [1, 2, 3])])
def test_three_ones(form: Form, gamma: float, expected: list[float]) -> None:
    ones = {n: torch.ones(1, 3, 1, 1) for n in "qkv"}
    o = call(compiled("fixed", gamma), form, ones)["o"]
    assert relative_error(o.flatten(), torch.tensor(expected)) <= 1e-6


def test_a_fixed_decay_of_zero_forgets_everything() -> None:
    """γ = 0 leaves the current token alone, or the spec is refused; it never gives NaN."""
    try:
        module = compiled("fixed", 0.0)
    except recgen.SpecError:
        return
    values = draw(module, T=20, H=1)
    o = call(module, NAIVE, values)["o"]
    alone = (values["q"] * values["k"]).sum(-1, keepdim=True) * values["v"]
    assert relative_error(o, alone) <= 1e-5
