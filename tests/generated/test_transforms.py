"""Derivatives of other kinds: forward mode and torch.func are right in `naive`, and refused in the other forms."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad

from tests.generated.catalogue import (
    CHUNK,
    CHUNK_TRITON,
    PARALLEL,
    RECURRENT,
    REPRESENTATIVES,
    Form,
    axes,
    each_form,
    emitted,
)
from tests.generated.inputs import draw

REFUSED = "need mode='naive'"


def function_of(name: str, argument: str, form: Form = CHUNK):
    """The output as a function of one argument, and that argument."""
    module = emitted(name)
    values = draw(module, T=5, H=1, K=4, V=3, dtype=torch.float32 if form.interpreted else torch.float64)

    def run(x: Tensor, mode: str = form.name) -> Tensor:
        return module.operator(**{**values, argument: x}, mode=mode, backend=form.backend)[0]

    return run, values[argument]


def tangent(x: Tensor) -> Tensor:
    return torch.randn(x.shape, generator=torch.Generator().manual_seed(3)).to(x.dtype)


@pytest.mark.parametrize("form", each_form([PARALLEL, CHUNK, RECURRENT, CHUNK_TRITON]))
def test_forward_mode_is_refused(form: Form) -> None:
    """With gradients and without: a tangent is never dropped."""
    run, x = function_of("simple_gla", "k", form)
    for grad in (True, False):
        with torch.set_grad_enabled(grad), forward_ad.dual_level(), pytest.raises(RuntimeError, match=REFUSED):
            run(forward_ad.make_dual(x, tangent(x)))


@pytest.mark.parametrize(
    "transform",
    [
        pytest.param(lambda run, x: torch.func.grad(lambda y: run(y).sum())(x), id="grad"),
        pytest.param(lambda run, x: torch.func.jvp(run, (x,), (tangent(x),)), id="jvp"),
        pytest.param(lambda run, x: torch.func.vmap(run)(torch.stack([x, x])), id="vmap"),
        pytest.param(lambda run, x: torch.func.jacrev(run)(x), id="jacrev"),
    ],
)
@pytest.mark.parametrize("form", each_form([PARALLEL, CHUNK, RECURRENT, CHUNK_TRITON]))
def test_torch_func_is_refused(form: Form, transform) -> None:
    run, x = function_of("simple_gla", "k", form)
    with pytest.raises(RuntimeError, match=REFUSED):
        transform(run, x)


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        (name, argument)
        for name in (*REPRESENTATIVES, "retnet_rotary", "hgrn", "rwkv4", "linear_attention_global")
        for argument in axes(emitted(name))
    ],
)
def test_naive_takes_them_all(name: str, argument: str) -> None:
    """Against numerical differences, or gradients, or a loop."""
    run, x = function_of(name, argument)

    def naive(y: Tensor) -> Tensor:
        return run(y, mode="naive")

    direction, small = tangent(x), 1e-6
    numerical = (naive(x + small * direction) - naive(x - small * direction)) / (2 * small)
    with forward_ad.dual_level():
        dual = forward_ad.unpack_dual(naive(forward_ad.make_dual(x, direction))).tangent
    torch.testing.assert_close(dual, numerical, rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(torch.func.jvp(naive, (x,), (direction,))[1], numerical, rtol=1e-5, atol=1e-7)
    leaf = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(run(leaf).sum(), leaf)
    torch.testing.assert_close(torch.func.grad(lambda y: naive(y).sum())(x), gradient)
    batch = torch.stack([x, 2 * x])
    torch.testing.assert_close(torch.func.vmap(naive)(batch), torch.stack([naive(y) for y in batch]))
