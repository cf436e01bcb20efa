"""Where the numbers lie does not matter: any layout gives the bits of contiguous copies; inputs stay as they were."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import recgen
from tests.generated.catalogue import NAIVE, OPERATORS, REPRESENTATIVES, TORCH_FORMS, Form, each_form, emitted, over
from tests.generated.inputs import Values, draw, draw_state, guarded
from tests.generated.support import assert_same_bits, call, run


def transposed(x: Tensor) -> Tensor:
    """Stored as [B,H,T,X], seen as [B,T,H,X]."""
    return x.transpose(1, 2).contiguous().transpose(1, 2) if x.dim() >= 3 else x


def every_second(x: Tensor) -> Tensor:
    """Every second token of a sequence twice as long, NaN between."""
    if x.dim() < 3:
        return x
    twice = x.new_full((x.shape[0], 2 * x.shape[1], *x.shape[2:]), math.nan)
    twice[:, ::2] = x
    return twice[:, ::2]


def reversed_axes(x: Tensor) -> Tensor:
    """Stored with every axis the other way round."""
    order = list(range(x.dim()))[::-1]
    return x.permute(order).contiguous().permute(order)


def every_second_entry(x: Tensor) -> Tensor:
    """The last axis with stride 2."""
    twice = x.new_full((*x.shape[:-1], 2 * x.shape[-1]), math.nan)
    twice[..., ::2] = x
    return twice[..., ::2]


LAYOUTS: tuple[Callable[[Tensor], Tensor], ...] = (transposed, every_second, reversed_axes, every_second_entry)


@over(REPRESENTATIVES)
def test_any_layout_gives_the_bits_of_contiguous_copies(name: str, form: Form) -> None:
    module = emitted(name)
    values = draw(module, B=2, T=5, H=2, K=8, V=8)
    state = draw_state(module, values)
    expected = run(module, form, values, state)
    for layout in LAYOUTS:
        laid_out = {n: layout(x) for n, x in values.items()}
        found = run(module, form, laid_out, {n: reversed_axes(x) for n, x in state.items()})
        assert_same_bits(found, expected, note=layout.__name__)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", OPERATORS)
def test_the_definition_and_a_step_too(name: str, layout: Callable) -> None:
    """Three heads and odd widths: where lanes of one instruction end, an exponential rounds differently."""
    module = emitted(name)
    values = draw(module, B=2, T=9, H=3, K=7, V=9)
    state = draw_state(module, values)
    laid_out = {n: layout(x) for n, x in values.items()}
    assert_same_bits(run(module, NAIVE, laid_out, state), run(module, NAIVE, values, state))
    if state:
        token = {n: x[:, 0] if n in module.INPUTS else x for n, x in laid_out.items()}
        found = module.step(**token, state=module.State(*state.values()))
        expected = module.step(**{n: x.contiguous() for n, x in token.items()}, state=module.State(*state.values()))
        assert all(map(torch.equal, (found[0], *found[1]), (expected[0], *expected[1])))


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("form", each_form(TORCH_FORMS))
def test_maxima_of_what_is_computed_from_strided_inputs(form: Form, layout: Callable) -> None:
    module = recgen.load(
        {
            "name": "rising",
            "inputs": {"i": "B T H", "f": "B T H"},
            "normalizer": "sum",
            "feature_map": "softplus",
            "decay": {"type": "gated", "log": "-softplus(f) * exp(f / 4)"},
            "key_weight": {"log": "3 * silu(i)"},
        }
    )
    values = draw(module, B=2, T=33, H=3, K=7, V=9)
    found = run(module, form, {n: layout(x) for n, x in values.items()})
    assert_same_bits(found, run(module, form, values))


@over(REPRESENTATIVES)
def test_slices_of_one_fused_projection(name: str, form: Form) -> None:
    module = emitted(name)
    values = draw(module, B=2, T=5, H=2, K=8, V=8)
    projected = [n for n in module.INPUTS if values[n].dim() == 4]
    fused = torch.cat([values[n] for n in projected], -1)
    widths = [values[n].shape[-1] for n in projected]
    sliced = {**values, **dict(zip(projected, fused.split(widths, -1), strict=True))}
    assert_same_bits(run(module, form, sliced), run(module, form, values))


@pytest.mark.parametrize("axis", [0, 1, 2])
@over(REPRESENTATIVES)
def test_expanded_inputs(name: str, form: Form, axis: int) -> None:
    """Stride 0 over the batch, the time, or the heads."""
    module = emitted(name)
    values = draw(module, B=2, T=5, H=2, K=8, V=8)
    expanded: Values = {n: x.narrow(axis, 0, 1).expand(x.shape) if x.dim() >= 3 else x for n, x in values.items()}
    copies = {n: guarded(x) for n, x in expanded.items()}
    assert_same_bits(run(module, form, expanded), run(module, form, copies))


@over(REPRESENTATIVES)
def test_expanded_and_strided_output_gradients(name: str, form: Form) -> None:
    """o.sum() sends back one number with strides 0; a transposed view sends back a transposed gradient."""
    module = emitted(name)
    values = draw(module, B=2, T=5, H=2, K=8, V=8)
    state = draw_state(module, values)

    def gradients(cotangent: Callable[[Tensor], Tensor]) -> Values:
        leaves = {n: x.detach().requires_grad_() for n, x in {**values, **state}.items()}
        outputs = call(module, form, {n: leaves[n] for n in values}, {n: leaves[n] for n in state})
        roots = [x for x in outputs.values() if x.requires_grad]  # a maximum has no gradient
        grads = torch.autograd.grad(roots, list(leaves.values()), [cotangent(x) for x in roots], allow_unused=True)
        found = {n: x for n, x in zip(leaves, grads, strict=True) if x is not None}
        assert set(leaves) - set(found) <= {"m"}
        return found

    ones = gradients(lambda x: guarded(torch.ones_like(x)))
    assert_same_bits(gradients(lambda x: torch.ones((), dtype=x.dtype).expand(x.shape)), ones)
    ramp = gradients(lambda x: torch.linspace(-1, 1, x.numel()).reshape(x.shape))
    assert_same_bits(gradients(lambda x: reversed_axes(torch.linspace(-1, 1, x.numel()).reshape(x.shape))), ramp)


@over(REPRESENTATIVES)
def test_results_do_not_share_memory_with_inputs(name: str, form: Form) -> None:
    module = emitted(name)
    values = draw(module, T=4, H=1)
    state = draw_state(module, values)
    found = call(module, form, values, state)
    given = {x.untyped_storage().data_ptr() for x in (*values.values(), *state.values())}
    assert not given & {x.untyped_storage().data_ptr() for x in found.values()}
