"""A state that nothing is added to decays by e^ℓ exactly, however strong the decay: each form against math.exp."""

from __future__ import annotations

import math

import pytest
import torch

from tests.generated.catalogue import FORMS, NAIVE, Form, emitted


@pytest.mark.parametrize("gate", [-0.1, -0.49, -0.51, -5.0, -14.0, -20.0, -40.0])
@pytest.mark.parametrize("form", (NAIVE, *FORMS), ids=str)
def test_one_token_of_a_scalar_gate(form: Form, gate: float) -> None:
    module = emitted("simple_gla")
    one, zero = torch.ones(1, 1, 1, 1), torch.zeros(1, 1, 1, 1)
    g = torch.tensor(gate).expand(1, 1, 1)
    function, options = getattr(module, form.name), {"backend": form.backend, "output_final_state": True}
    o, end = function(one, zero, zero, g, initial_state=(one,), **options)
    decay = math.exp(-math.log1p(math.exp(-gate)))
    assert o.item() == pytest.approx(decay, rel=1e-6)
    assert end.S.item() == pytest.approx(decay, rel=1e-6)


def test_weak_decay_does_not_drift_over_a_thousand_tokens() -> None:
    module = emitted("retnet")
    heads, T = 8, 1000
    zero = torch.zeros(1, T, heads, 1)
    state = (torch.ones(1, heads, 1, 1),)
    _, end = module.recurrent(zero, zero, zero, initial_state=state, output_final_state=True)
    expected = torch.tensor([(1 - 2.0 ** (-5 - h)) ** T for h in range(heads)], dtype=torch.float64)
    assert torch.allclose(end.S.flatten().double(), expected, rtol=1e-5, atol=0)
