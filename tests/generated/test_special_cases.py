"""γ·1 and 1 are special cases: operators that must coincide do, in every form."""
from __future__ import annotations

import functools
from types import ModuleType

import pytest
import torch

import recgen
from tests.generated.support import (
    NAIVE,
    Form,
    Values,
    assert_matches,
    call,
    draw,
    draw_state,
    each_form,
    emitted,
    in_float64,
    relative_error,
    run,
    truth,
)

RETNET_OF_ONE = {"name": "retnet_of_one", "decay": {"type": "fixed", "value": 1}, "scale": "K ** -0.5"}
PLAIN = {"name": "plain", "scale": "K ** -0.5"}


@functools.cache
def compiled(kind: str, gamma: float = 1.0) -> ModuleType:
    spec = {"one": RETNET_OF_ONE, "plain": PLAIN,
            "fixed": {"name": "fixed", "decay": {"type": "fixed", "value": gamma}}}[kind]
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


@pytest.mark.parametrize("form", each_form())
@pytest.mark.parametrize("name", ["learned_decay", "simple_gla", "gla"])
def test_a_constant_gate_is_retnet(name: str, form: Form) -> None:
    """The gate, or the parameter, that gives γ_h = 1 − 2^(−5−h)."""
    log_decay = torch.log(1 - 2.0 ** (-5 - torch.arange(3, dtype=torch.float64)))
    values = draw(emitted(name), T=130, H=3, log_decay=log_decay[:, None] if name == "gla" else log_decay)
    shared = {n: values[n] for n in "qkv"}
    state = draw_state(emitted(name), values)
    expected = truth(emitted("retnet"), shared, state)
    found = run(emitted(name), form, values, state)
    assert_matches({n: found[n] for n in expected}, expected)


@pytest.mark.parametrize("form", each_form())
def test_a_gate_that_is_the_same_for_all_channels_is_a_scalar_gate(form: Form) -> None:
    values = draw(emitted("gla"), T=70, H=2)
    scalar = torch.nn.functional.logsigmoid(torch.randn(1, 70, 2, generator=torch.Generator().manual_seed(3)).double())
    of_head = draw(emitted("simple_gla"), T=70, H=2, log_decay=scalar)
    of_channel = draw(emitted("gla"), T=70, H=2, log_decay=scalar[..., None])
    assert all(torch.equal(of_head[n], values[n]) for n in "qkv")
    expected = call(emitted("simple_gla"), NAIVE, in_float64(of_head))
    assert_matches(call(emitted("gla"), form, of_channel), expected)


@pytest.mark.parametrize("form", each_form())
@pytest.mark.parametrize("name", ["simple_gla", "gla"])
def test_an_open_gate_is_retnet_with_gamma_1(name: str, form: Form) -> None:
    values = draw(emitted(name), T=70, H=2, log_decay=0.0)
    shared: Values = {n: values[n] for n in "qkv"}
    expected = truth(compiled("one"), shared)
    found = run(emitted(name), form, values)
    assert_matches({n: found[n] for n in expected}, expected)
    assert not found["d g"].any()


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
