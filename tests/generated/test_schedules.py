"""Faults that kernels are known for, in both schedules and on packed documents: three segments, and short ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.generated.catalogue import CHUNK_SPLIT, CHUNK_TRITON, Form, emitted, over
from tests.generated.inputs import Values, draw, draw_state, value_inputs, weak
from tests.generated.support import (
    assert_matches,
    assert_same_bits,
    call,
    leaves_of,
    relative_error,
    results,
    run,
    truth,
)

SCHEDULES = (CHUNK_TRITON, CHUNK_SPLIT)
STRUCTURES = ("linear_attention", "simple_gla", "gla")
GATED = ("simple_gla", "gla")
LENGTHS = (0, 1, 37, 0, 16)
"""Of the documents: the third has three segments of 16 tokens, the last of which is ragged."""
T = sum(LENGTHS)
PACKED: dict[str, Any] = {"cu_seqlens": torch.tensor((0, *LENGTHS)).cumsum(0)}
DOCUMENTS = len(LENGTHS)


def packed(name: str, **sizes: Any) -> tuple[Values, Values]:
    """Documents, and the states that they continue from."""
    module = emitted(name)
    values = draw(module, **{"T": T, "H": 1, "K": 6, "V": 5, **sizes})
    return values, draw_state(module, values, N=DOCUMENTS)


def matches(name: str, form: Form, values: Values, state: Values, note: object = "", **options: Any) -> None:
    module, options = emitted(name), {**PACKED, **options}
    assert_matches(
        run(module, form, values, state, chunk_size=16, **options), truth(module, values, state, **options), note=note
    )


@over(STRUCTURES, (*SCHEDULES, Form("recurrent", "triton", "split")))
def test_documents_of_any_length(name: str, form: Form) -> None:
    matches(name, form, *packed(name))


@over(GATED, SCHEDULES)
@pytest.mark.parametrize("log_decay", [-0.5, -1.4, -20.0, -80.0, "jumps", "one channel"])
def test_decays_of_any_strength(name: str, form: Form, log_decay: float | str) -> None:
    jumps = torch.where(torch.arange(T) % 16 == 15, -100.0, 0.0).reshape(1, T, 1)
    channel = torch.zeros(6 if name == "gla" else 1)
    channel[0] = -20.0
    found = {"jumps": jumps, "one channel": channel}.get(str(log_decay), log_decay)
    matches(name, form, *packed(name, log_decay=found))


@over(GATED, SCHEDULES)
def test_no_decay_is_no_decay(name: str, form: Form) -> None:
    """Exactly none, and none at every second token."""
    values, state = packed(name)
    for every in (1, 2):
        values["g"][:, ::every] = 1e4
        matches(name, form, values, state, note=every)


@over(GATED, SCHEDULES)
def test_the_decays_gradient_with_gate_logits_100_times_normal(name: str, form: Form) -> None:
    module = emitted(name)
    values, state = packed(name)
    values["g"] *= 100
    found, expected = run(module, form, values, state, chunk_size=16, **PACKED), truth(module, values, state, **PACKED)
    assert_matches(found, expected)
    assert relative_error(found["d g"], expected["d g"]) <= 1e-5


@over(GATED, SCHEDULES)
def test_the_initial_states_have_their_share_in_every_gradient(name: str, form: Form) -> None:
    """Weak decay, and states that outweigh what the tokens write."""
    module = emitted(name)
    values = weak(module, T=T, H=1, K=6, V=5)
    for n in value_inputs(module):
        values[n].mul_(0.01)
    matches(name, form, values, draw_state(module, values, N=DOCUMENTS, size=10.0))


@over(STRUCTURES, SCHEDULES)
@pytest.mark.parametrize("loss", ["output", "state"])
def test_a_loss_on_one_of_both(name: str, form: Form, loss: str) -> None:
    matches(name, form, *packed(name), loss=loss)


@over(STRUCTURES, SCHEDULES)
def test_narrow_widths(name: str, form: Form) -> None:
    for K, V in ((2 if name == "linear_attention" else 1, 1), (2, 16), (16, 1)):  # a query of one feature cancels
        matches(name, form, *packed(name, K=K, V=V), note=(K, V))


@over(("linear_attention", "simple_gla"), SCHEDULES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_ones_in_16_bits_are_counted(name: str, form: Form, dtype: torch.dtype) -> None:
    """From a state of 3000, which 16 bits cannot count on from: the state and its sums are float32."""
    module = emitted(name)
    values = {n: torch.ones_like(x, dtype=dtype) for n, x in draw(module, T=T, H=1, K=1, V=1).items()}
    if "g" in values:
        values["g"] = torch.full_like(values["g"], torch.inf)
    state = {n: torch.full_like(x, 3000.0) for n, x in draw_state(module, values, N=DOCUMENTS).items()}
    found = call(module, form, values, state, chunk_size=16, **PACKED)
    key = (found["S"].flatten() - 3000)[1]
    assert found["S"].dtype == torch.float32
    assert torch.equal(found["S"].flatten(), 3000 + key * torch.tensor(LENGTHS))


@over(GATED, SCHEDULES)
def test_mixed_dtypes(name: str, form: Form) -> None:
    """Gates in float32 beside bfloat16: every gradient has its input's dtype, the state is float32."""
    module = emitted(name)
    values, state = packed(name)
    values = {n: x if n == "g" else x.bfloat16() for n, x in values.items()}
    found, expected = run(module, form, values, state, chunk_size=16, **PACKED), truth(module, values, state, **PACKED)
    assert all(relative_error(found[n], x) <= 2e-2 for n, x in expected.items())
    assert found["S"].dtype == torch.float32


@over(STRUCTURES, SCHEDULES)
def test_gradients_go_to_those_who_want_them(name: str, form: Form) -> None:
    module = emitted(name)
    values, state = packed(name)
    every = run(module, form, values, state, chunk_size=16, **PACKED)
    for wanted in (["v"], ["q", "S"], ["k"]):
        leaves = {n: x.detach().requires_grad_(n in wanted) for n, x in {**values, **state}.items()}
        parts = {n: leaves[n] for n in values}, {n: leaves[n] for n in state}
        found = results(call(module, form, *parts, chunk_size=16, **PACKED), leaves)
        assert_same_bits(found, {n: every[n] for n in (*(f"d {w}" for w in wanted), "o", *state)}, note=wanted)


@over(GATED, SCHEDULES)
@pytest.mark.parametrize("scale", [0.0, -0.5])
def test_a_scale_is_a_number(name: str, form: Form, scale: float) -> None:
    matches(name, form, *packed(name), scale=scale)


def later(values: Values, t: int) -> Values:
    """Other inputs from token t on."""
    return {n: torch.cat([x[:, :t], x[:, t:] + 1], 1) for n, x in values.items()}


def bits(name: str, form: Form, values: Values, state: Values) -> Values:
    return run(emitted(name), form, values, state, chunk_size=16, **PACKED)


@over(STRUCTURES, SCHEDULES)
def test_equal_inputs_give_equal_bits(name: str, form: Form) -> None:
    values, state = packed(name)
    assert_same_bits(bits(name, form, leaves_of(values), leaves_of(state)), bits(name, form, values, state))


@over(STRUCTURES, SCHEDULES)
@pytest.mark.parametrize("cut", [sum(LENGTHS[:3]), 20], ids=["a document", "within one"])
def test_what_comes_later_changes_no_bit(name: str, form: Form, cut: int) -> None:
    """Of the outputs before it, and where it is another document not of gradients either."""
    values, state = packed(name)
    found, other = (bits(name, form, x, state) for x in (values, later(values, cut)))
    assert not torch.equal(found["o"][:, cut:], other["o"][:, cut:])
    alone: Callable[[str], bool] = (lambda n: n == "o") if cut == 20 else lambda n: n == "o" or n[2:] in values
    assert_same_bits(
        {n: x[:, :cut] for n, x in other.items() if alone(n)}, {n: x[:, :cut] for n, x in found.items() if alone(n)}
    )
