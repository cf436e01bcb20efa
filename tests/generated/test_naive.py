"""`naive` is the published recurrence: outputs, states and every gradient agree with a loop written from the paper."""

from __future__ import annotations

import pytest
import torch

from tests.generated.catalogue import NAIVE, OPERATORS, emitted
from tests.generated.equations import arguments, published
from tests.generated.inputs import draw, draw_state
from tests.generated.support import assert_matches, leaves_of, results, run

BY_HAND = [
    name
    for name in (
        "linear_attention",
        "retnet",
        "learned_decay",
        "simple_gla",
        "gla",
        "gla_value",
        "gla_outer",
        "gated_retention",
    )
    if name in OPERATORS
]


@pytest.mark.parametrize("name", OPERATORS)
def test_arguments_come_in_the_order_of_the_equation(name: str) -> None:
    module = emitted(name)
    assert [*module.INPUTS, *module.PARAMS] == arguments(name)


@pytest.mark.parametrize("scale", [None, -0.5, 0.0])
@pytest.mark.parametrize("with_state", [False, True], ids=["empty", "initial_state"])
@pytest.mark.parametrize("name", OPERATORS)
def test_naive_is_the_published_recurrence(name: str, with_state: bool, scale: float | None) -> None:
    module = emitted(name)
    values = draw(module, B=2, T=13, H=3, K=5, V=4, dtype=torch.float64)
    state = draw_state(module, values) if with_state else {}
    found = run(module, NAIVE, values, state, scale=scale)

    leaves, start = leaves_of(values), leaves_of(state)
    o, final = published(name, leaves, tuple(start.values()) or None, scale=scale)
    outputs = {"o": o, **dict(zip(module.STATE, final, strict=True))}
    assert_matches(found, results(outputs, {**leaves, **start}), torch.float64)


@pytest.mark.parametrize("name", BY_HAND)
def test_naive_by_hand(name: str) -> None:
    """q = k = v = 1 and no decay: o_t counts the tokens; normalised, it is their mean."""
    module = emitted(name)
    values = draw(module, T=5, H=1, K=1, V=1, log_decay=0.0)
    o, state = module.naive(**{n: torch.ones_like(x) if n in "qkv" else x for n, x in values.items()})
    gamma = 1 - 2**-5 if name == "retnet" else 1.0
    counts = torch.tensor([sum(gamma**i for i in range(t + 1)) for t in range(5)])
    expected = torch.ones(5) if name == "linear_attention" else counts
    assert state is None
    torch.testing.assert_close(o.flatten(), expected, rtol=1e-6, atol=0)
