"""A second derivative is right or refused, never silently zero."""

from __future__ import annotations

import pytest
import torch

from tests.generated.catalogue import (
    CHUNK,
    CHUNK_TRITON,
    NAIVE,
    PARALLEL,
    RECURRENT,
    Form,
    each_form,
    emitted,
)
from tests.generated.inputs import draw


def gradient(form: Form, T: int = 9) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    module = emitted("simple_gla")
    values = {n: x.requires_grad_() for n, x in draw(module, T=T, H=1).items()}
    o, _ = getattr(module, form.name)(**values, backend=form.backend)
    (found,) = torch.autograd.grad(o.sum(), values["q"], create_graph=True)
    return found, values


@pytest.mark.parametrize("form", each_form([PARALLEL, CHUNK, RECURRENT, CHUNK_TRITON]))
def test_second_derivatives_are_refused(form: Form) -> None:
    found, values = gradient(form)
    with pytest.raises(RuntimeError, match="mode='naive'"):
        torch.autograd.grad(found.pow(2).sum(), values["v"])


@pytest.mark.parametrize("form", each_form([CHUNK]))
def test_first_derivatives_do_not_mind(form: Form) -> None:
    found, _ = gradient(form)
    expected, values = gradient(NAIVE)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    assert torch.autograd.grad(expected.pow(2).sum(), values["v"])[0].norm() > 0
