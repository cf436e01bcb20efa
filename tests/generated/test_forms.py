"""Every form on every backend computes what `naive` computes: outputs, final state, and every gradient."""

from __future__ import annotations

import inspect

import pytest
import torch

from tests.generated.catalogue import (
    CARRYING,
    CHUNK,
    CHUNK_TRITON,
    NAIVE,
    OPERATORS,
    RECURRENT_TRITON,
    REPRESENTATIVES,
    TORCH_FORMS,
    Form,
    emitted,
    forms_of,
    over,
)
from tests.generated.inputs import draw, draw_state
from tests.generated.support import assert_matches, assert_same_bits, call, run, truth


@pytest.mark.parametrize("with_state", [False, True], ids=["empty", "initial_state"])
@over(REPRESENTATIVES)
def test_form_matches_naive(name: str, form: Form, with_state: bool) -> None:
    module = emitted(name)
    values = draw(module, B=2, T=40, H=2, K=16, V=8)
    state = draw_state(module, values) if with_state else None
    assert_matches(run(module, form, values, state, chunk_size=None), truth(module, values, state))


@over(REPRESENTATIVES, [CHUNK, CHUNK_TRITON])
def test_every_chunk_size_matches_naive(name: str, form: Form) -> None:
    module = emitted(name)
    values = draw(module, T=150, H=1, K=8, V=16)
    state = draw_state(module, values)
    expected = truth(module, values, state)
    for chunk_size in (16, 32, 64, 128):
        assert_matches(run(module, form, values, state, chunk_size=chunk_size), expected, note=chunk_size)


@pytest.mark.parametrize("name", CARRYING)
def test_step_takes_its_arguments_by_position(name: str) -> None:
    module = emitted(name)
    values = draw(module, T=1)
    state = module.State(**draw_state(module, values))
    token = [values[n][:, 0] for n in module.INPUTS] + [values[n] for n in module.PARAMS]
    by_position, _ = module.step(*token, state)
    o, _ = module.naive(*values.values(), initial_state=state)
    torch.testing.assert_close(by_position, o[:, 0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_operator_is_the_form_it_is_asked_for(name: str) -> None:
    module = emitted(name)
    values = draw(module, T=40)
    for form in (*forms_of(name, TORCH_FORMS), NAIVE):
        expected = call(module, form, values)
        o, final = module.operator(*values.values(), mode=form.name, backend="torch", output_final_state=True)
        assert_same_bits({"o": o, **final._asdict()}, expected, note=form)


@pytest.mark.interpreter
@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_operator_takes_triton_only_when_told_to_on_cpu(name: str) -> None:
    module = emitted(name)
    values = draw(module, T=20, H=1)
    for form in (CHUNK_TRITON, RECURRENT_TRITON):
        o, _ = module.operator(**values, mode=form.name, backend="triton")
        assert torch.equal(o, call(module, form, values, chunk_size=None)["o"])
    assert torch.equal(module.chunk(**values)[0], module.chunk(**values, backend="torch")[0])
    assert torch.equal(module.operator(**values)[0], module.operator(**values, backend="torch")[0])


@pytest.mark.parametrize("name", OPERATORS)
def test_every_form_has_the_signature_of_the_contract(name: str) -> None:
    module = emitted(name)
    tensors = [*module.INPUTS, *module.PARAMS]
    common = ["scale", *(["initial_state", "output_final_state"] if module.STATE else []), "cu_seqlens", "mask"]
    for form in ("operator", "naive", *(form.name for form in forms_of(name, TORCH_FORMS))):
        parameters = inspect.signature(getattr(module, form)).parameters
        assert list(parameters)[: len(tensors)] == tensors, form
        assert all(parameters[n].kind is inspect.Parameter.KEYWORD_ONLY for n in common), form
    operator = inspect.signature(module.operator).parameters
    assert {n: operator[n].default for n in ("mode", "backend", "schedule", "chunk_size")} == {
        "mode": "auto",
        "backend": "auto",
        "schedule": "auto",
        "chunk_size": None,
    }


@pytest.mark.parametrize("schedule", ["auto", "fused", "split"])
@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_every_schedule_matches_naive(name: str, schedule: str) -> None:
    module = emitted(name)
    values = draw(module, T=33)
    assert "fused" in module.SCHEDULES
    assert_matches(run(module, CHUNK, values, schedule=schedule), truth(module, values))
