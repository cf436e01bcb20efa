"""Padding by a mask: wherever it stands, it neither writes nor decays nor counts, and nothing of it is read."""

from __future__ import annotations

import math
from types import ModuleType

import pytest
import torch
from torch import Tensor

from tests.generated.catalogue import (
    CHUNK,
    CHUNK_SPLIT,
    CHUNK_TRITON,
    NAIVE,
    OPERATORS,
    RECURRENT,
    REPRESENTATIVES,
    Form,
    emitted,
    forms_of,
    over,
)
from tests.generated.inputs import Values, draw, draw_state
from tests.generated.support import assert_matches, call, leaves_of, run

T = 21
MASKS = {
    "left": [0] * 5 + [1] * 16,
    "right": [1] * 9 + [0] * 12,
    "inner": [1, 0, 0, 1, 1, 0, 1] * 3,
    "none kept": [0] * T,
    "all kept": [1] * T,
}


def mask_of(*names: str) -> Tensor:
    """One row of the batch for each name."""
    return torch.tensor([MASKS[n] for n in names], dtype=torch.bool)


def weighed(
    module: ModuleType, form: Form, values: Values, state: Values, weights: Tensor, **options: object
) -> Values:
    """Output, final state, and the gradients of the inputs for an output that is summed with these weights."""
    leaves = leaves_of(values)
    found = call(module, form, leaves, state, **options)
    gradients = torch.autograd.grad((found["o"] * weights).sum(), [leaves[n] for n in module.INPUTS], allow_unused=True)
    pairs = zip(module.INPUTS, gradients, strict=True)
    return found | {f"d {n}": torch.zeros_like(values[n]) if g is None else g for n, g in pairs}


@over(OPERATORS, (NAIVE, CHUNK))
def test_a_padded_batch_is_its_rows_without_padding(name: str, form: Form) -> None:
    module = emitted(name)
    mask = mask_of("left", "right", "inner", "none kept", "all kept")
    values = {n: x.double() for n, x in draw(module, B=len(mask), T=T, H=2, K=6, V=5).items()}
    state = {n: x.double() for n, x in draw_state(module, values, N=len(mask)).items()}
    weights = torch.randn(call(module, form, values, state)["o"].shape, dtype=torch.float64)
    found = weighed(module, form, values, state, weights, mask=mask)
    for b, kept in enumerate(mask):
        own = {n: x[b : b + 1][:, kept] if n in module.INPUTS else x for n, x in values.items()}
        start = {n: x[b : b + 1] for n, x in state.items()}
        alone = weighed(module, NAIVE, own, start, weights[b : b + 1][:, kept])
        for n, x in alone.items():
            here = found[n][b : b + 1]
            if n not in module.STATE:
                assert not here[:, ~kept].any(), (n, b)
                here = here[:, kept]
            assert_matches({n: here}, {n: x}, torch.float64, note=f"row {b}")


@pytest.mark.interpreter
@pytest.mark.parametrize("name", REPRESENTATIVES)
@pytest.mark.parametrize("form", [CHUNK_TRITON, CHUNK_SPLIT], ids=str)
def test_kernels_take_padding_too(name: str, form: Form) -> None:
    module = emitted(name)
    if not forms_of(name, [form]):
        pytest.skip("it has no such schedule")
    mask = mask_of("left", "inner")
    values = draw(module, B=2, T=T, H=1, K=6, V=5)
    state = draw_state(module, values, N=2)
    assert_matches(run(module, form, values, state, mask=mask), run(module, NAIVE, values, state, mask=mask))


@over(REPRESENTATIVES, (CHUNK, RECURRENT, NAIVE))
def test_what_padding_holds_changes_no_bit(name: str, form: Form) -> None:
    module = emitted(name)
    mask = mask_of("inner", "left")
    values = draw(module, B=2, T=T, H=1, K=4, V=3)
    broken = {
        n: torch.where(mask.reshape(2, T, *[1] * (x.dim() - 2)), x, math.nan) if n in module.INPUTS else x
        for n, x in values.items()
    }
    first, second = (run(module, form, x, draw_state(module, values, N=2), mask=mask) for x in (values, broken))
    for n, x in first.items():
        assert torch.equal(x, second[n]), n


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_padding_inside_packed_documents(name: str) -> None:
    module = emitted(name)
    mask, offsets = mask_of("inner"), torch.tensor([0, 8, 8, T])
    values = draw(module, T=T, H=1, K=4, V=3)
    state = draw_state(module, values, N=3)
    counts = torch.tensor([0, int(mask[0, :8].sum()), int(mask[0, :8].sum()), int(mask.sum())])
    kept = {n: x[:, mask[0]] if n in module.INPUTS else x for n, x in values.items()}
    needed = call(module, CHUNK, kept, state, cu_seqlens=counts)
    found = call(module, CHUNK, values, state, mask=mask, cu_seqlens=offsets)
    assert torch.equal(found["o"][:, mask[0]], needed["o"])
    assert all(torch.equal(found[n], needed[n]) for n in module.STATE)


@pytest.mark.parametrize(
    ("mask", "reason"),
    [
        ([[True] * T], "expected a bool tensor"),
        (torch.ones(1, T), "got torch.float32"),
        (torch.ones(T, dtype=torch.bool), r"expected shape \[1, 21\]"),
        (torch.ones(1, T - 1, dtype=torch.bool), r"got \[1, 20\]"),
    ],
)
def test_a_wrong_mask_is_refused(mask: object, reason: str) -> None:
    module = emitted("simple_gla")
    with pytest.raises(ValueError, match=f"mask: .*{reason}"):
        module.operator(**draw(module, T=T), mask=mask)
