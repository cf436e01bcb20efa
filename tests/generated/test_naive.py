"""`naive` is the published recurrence: outputs, states and every gradient agree with a loop written from the paper."""
from __future__ import annotations

import pytest
import torch

from tests.generated.equations import EQUATIONS
from tests.generated.support import NAIVE, OPERATORS, assert_matches, cotangents, draw, draw_state, emitted, run


@pytest.mark.parametrize("scale", [None, -0.5, 0.0])
@pytest.mark.parametrize("with_state", [False, True])
@pytest.mark.parametrize("name", OPERATORS)
def test_naive_is_the_published_recurrence(name: str, with_state: bool, scale: float | None) -> None:
    module = emitted(name)
    values = draw(module, B=2, T=13, H=3, K=5, V=4, dtype=torch.float64)
    state = draw_state(module, values) if with_state else None
    found = run(module, NAIVE, values, state, scale=scale)

    leaves = {n: x.detach().requires_grad_() for n, x in values.items()}
    start = {n: x.detach().requires_grad_() for n, x in (state or {}).items()}
    o, final = EQUATIONS[name](**leaves, scale=scale, state=tuple(start.values()) or None)
    outputs = {"o": o, **dict(zip(module.STATE, final, strict=True))}
    wanted = {**leaves, **start}
    gradients = torch.autograd.grad(list(outputs.values()), list(wanted.values()),
                                    [cotangents(outputs)[n] for n in outputs])
    expected = {n: x.detach() for n, x in outputs.items()}
    expected.update({f"d {n}": g for n, g in zip(wanted, gradients, strict=True)})
    assert_matches(found, expected, torch.float64)


@pytest.mark.parametrize("name", OPERATORS)
def test_naive_by_hand(name: str) -> None:
    """q = k = v = 1 and no decay: o_t counts the tokens; normalised, it is their mean."""
    module = emitted(name)
    values = {n: torch.ones_like(x) for n, x in draw(module, T=5, H=1, K=1, V=1, log_decay=0.0).items()
              if n in ("q", "k", "v")}
    decay = {n: x for n, x in draw(module, T=5, H=1, K=1, V=1, log_decay=0.0).items() if n not in values}
    o, state = module.naive(**values, **decay)
    gamma = 1 - 2 ** -5 if name == "retnet" else 1.0
    counts = torch.tensor([sum(gamma ** i for i in range(t + 1)) for t in range(5)])
    expected = torch.ones(5) if name == "linear_attention" else counts
    assert state is None
    torch.testing.assert_close(o.flatten(), expected, rtol=1e-6, atol=0)
