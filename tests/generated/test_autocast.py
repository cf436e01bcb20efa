"""torch.autocast: inputs are cast as scaled_dot_product_attention has them cast; what makes exponents is not."""

from __future__ import annotations

from types import ModuleType

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.generated.catalogue import CARRYING, FORMS, NAIVE, OPERATORS, REPRESENTATIVES, Form, emitted, over, profile
from tests.generated.inputs import Values, draw, draw_state, state_dtype, value_inputs
from tests.generated.support import (
    assert_same_bits,
    call,
    leaves_of,
    relative_error,
    results,
    run,
    truth,
)

HELD = {"mlstm": {"i"}, "rwkv4": {"k"}}
"""Beside the drivers of the decay: logarithms of weights."""


def cast(module: ModuleType, values: Values, dtype: torch.dtype = torch.bfloat16) -> Values:
    """What autocast makes of the arguments: parameters and what exponents are made of stay as they are."""
    held = {*profile(module).drivers, *HELD.get(module.SPEC["name"], ()), *module.PARAMS}
    return {n: x if n in held else x.to(dtype) for n, x in values.items()}


@over(OPERATORS, (NAIVE, *FORMS))
def test_it_is_the_operator_on_cast_inputs(name: str, form: Form) -> None:
    """To the bit; nothing inside is cast besides, such as the products of a feature map."""
    module = emitted(name)
    values = draw(module, T=20, H=1, K=8, V=8)
    state = draw_state(module, values)
    with torch.autocast("cpu", torch.bfloat16):
        found = call(module, form, values, state)
    assert_same_bits(found, call(module, form, cast(module, values), state))
    assert all(found[n].dtype == state_dtype(values, n) for n in state)


@over(REPRESENTATIVES)
def test_gradients_have_their_inputs_dtype(name: str, form: Form) -> None:
    """The backward pass runs outside of autocast, as it usually does, and also inside of it."""
    module = emitted(name)
    values = draw(module, T=20, H=1, K=8, V=8)
    state = draw_state(module, values)
    expected = run(module, form, cast(module, values), state)
    for backward_inside in (False, True):
        leaves, start = leaves_of(values), leaves_of(state)
        with torch.autocast("cpu", torch.bfloat16):
            outputs = call(module, form, leaves, start)
        with torch.autocast("cpu", torch.bfloat16, enabled=backward_inside):
            found = results(outputs, {**leaves, **start})
        assert all(found[f"d {n}"].dtype == torch.float32 for n in values)
        assert_same_bits(found, {n: x.to(found[n].dtype) for n, x in expected.items()})


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_it_is_as_accurate_as_16_bits_are(name: str) -> None:
    """Against float64 on the inputs as they were; gates of float32 keep the decay exact over many tokens."""
    module = emitted(name)
    values = draw(module, T=200, H=2, K=16, V=8)
    with torch.autocast("cpu", torch.bfloat16):
        found = call(module, FORMS[1], values)
    assert relative_error(found["o"], truth(module, values)["o"]) < 0.02


@pytest.mark.parametrize("name", CARRYING)
def test_a_step_is_cast_too(name: str) -> None:
    module = emitted(name)
    values = draw(module, T=1, H=1, K=8, V=8)
    token = {n: x[:, 0] if n in module.INPUTS else x for n, x in values.items()}
    with torch.autocast("cpu", torch.bfloat16):
        o, end = module.step(**token)
    expected, after = module.step(**cast(module, token))
    assert o.dtype == expected.dtype
    assert_same_bits({"o": o, **end._asdict()}, {"o": expected, **after._asdict()})


def attention(x: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(x, x, x)


@pytest.mark.parametrize("target", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64], ids=str)
@pytest.mark.parametrize("name", ["simple_gla", "linear_attention", "linear_attention_global", "mamba2"])
def test_dtypes_are_those_of_attention(name: str, dtype: torch.dtype, target: torch.dtype) -> None:
    """Wider and other 16-bit inputs become the dtype of autocast, float64 stays; so do the outputs."""
    module = emitted(name)
    values = {n: x.to(dtype) for n, x in draw(module, T=5, H=1, K=4, V=4).items()}
    (value, *_) = value_inputs(module)
    with torch.autocast("cpu", target):
        expected = attention(values[value]).dtype
        assert module.operator(**values)[0].dtype == expected
