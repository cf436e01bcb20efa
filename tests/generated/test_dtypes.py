"""16-bit inputs and mixtures: as accurate as eager code at least, and each gradient has its input's dtype."""

from __future__ import annotations

import itertools

import pytest
import torch

from tests.generated import eager
from tests.generated.catalogue import FORMS, REPRESENTATIVES, Form, axes, each_form, emitted, over, profile
from tests.generated.inputs import Values, draw, draw_state, state_dtype
from tests.generated.support import relative_error, run, truth

WIDE = (torch.float32, torch.bfloat16)


def assert_as_accurate_as_eager(
    found: Values, expected: Values, reference: Values, form: Form, *, note: object = ""
) -> None:
    """1.1 times the error of the eager code, everything against float64.

    Triton's interpreter cuts float32 off where it should round to bfloat16, so there the error of cutting off the truth
    is allowed where it is larger.
    """
    for name, x in expected.items():
        allowed = 1.1 * relative_error(reference[name], x)
        if form.interpreted and found[name].dtype == torch.bfloat16:
            just_below = (x * (1 - 1e-5)).float()
            cut_off = (just_below.view(torch.int32) & ~0xFFFF).view(torch.float32)
            allowed = max(allowed, 1.1 * relative_error(cut_off, x))
        error = relative_error(found[name], x)
        assert error <= allowed, f"{form} {note} {name}: {error:.1e}, allowed {allowed:.1e}"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("with_state", [False, True], ids=["empty", "initial_state"])
@over(REPRESENTATIVES)
def test_16_bits_are_as_accurate_as_eager_code(name: str, form: Form, with_state: bool, dtype: torch.dtype) -> None:
    module = emitted(name)
    values = draw(module, T=50, H=2, K=32, V=16, dtype=dtype)
    state = draw_state(module, values) if with_state else None
    found = run(module, form, values, state)
    assert found["o"].dtype == dtype and all(found[n].dtype == state_dtype(values, n) for n in module.STATE)
    assert_as_accurate_as_eager(found, truth(module, values, state), eager.run(module, values, state), form)


@over(REPRESENTATIVES)
def test_mixed_dtypes_work_or_are_refused(name: str, form: Form) -> None:
    """Query, key and value of one dtype; gates with parameters, and initial state, each of another."""
    module = emitted(name)
    rest = [n for n in axes(module) if n in module.PARAMS or n in profile(module).drivers]
    for of_qkv, of_rest, of_state in itertools.product(WIDE, WIDE if rest else WIDE[:1], WIDE):
        values = draw(module, T=20, H=1, K=8, V=8, seed=1)
        state = draw_state(module, values)
        values = {n: x.to(of_rest if n in rest else of_qkv) for n, x in values.items()}
        state = {n: x.to(of_state) for n, x in state.items()}
        low = {n: x.bfloat16() for n, x in values.items()}
        must_work = of_state == torch.float32 and (of_qkv, of_rest) != (torch.float32, torch.bfloat16)
        try:
            found = run(module, form, values, state)
        except TypeError as error:
            assert not must_work, error
            assert any(n in str(error) for n in (*values, "initial_state")), error
            continue
        assert all(found[n].dtype == state_dtype(values, n) for n in module.STATE)
        expected = truth(module, values, state)
        reference = eager.run(module, low, state)
        assert_as_accurate_as_eager(found, expected, reference, form, note=(of_qkv, of_rest, of_state))


@pytest.mark.parametrize("form", each_form())
@pytest.mark.parametrize("odd", ["q", "k", "v"])
def test_q_k_v_of_different_dtypes_work_or_are_refused(form: Form, odd: str) -> None:
    module = emitted("simple_gla")
    values = draw(module, T=20, H=1, K=8, V=8)
    values = {n: x.bfloat16() if n == odd else x for n, x in values.items()}
    low = {n: x.bfloat16() for n, x in values.items()}
    try:
        found = run(module, form, values)
    except TypeError as error:
        assert any(f"{n}" in str(error) for n in "qkv"), error
        return
    assert_as_accurate_as_eager(found, truth(module, values), eager.run(module, low), form)


@over(REPRESENTATIVES, [form for form in FORMS if form.backend == "torch"])
def test_float64_stays_float64(name: str, form: Form) -> None:
    module = emitted(name)
    found = run(module, form, draw(module, T=10, dtype=torch.float64))
    assert all(x.dtype == torch.float64 for x in found.values())
