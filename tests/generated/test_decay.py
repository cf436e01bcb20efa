"""Strong decay, no decay, and resets: finite and right in every form, where products of exponentials would overflow."""

from __future__ import annotations

import math

import torch

from tests.generated.catalogue import (
    CHUNK,
    CHUNK_TRITON,
    DECAYED,
    GATES,
    RECURRENT_TRITON,
    Form,
    emitted,
    over,
    profile,
)
from tests.generated.inputs import Values, draw, draw_state, without_decay
from tests.generated.support import assert_matches, assert_same_bits, call, relative_error, run, truth

STRENGTHS = (-0.5, -1.0, -1.3, -1.4, -2.0, -5.0, -20.0, -80.0)
STEPPED = (-0.5, -5.0, -80.0)
"""For the interpreted recurrence, which multiplies by one decay at a time and raises nothing to a power."""
CHUNK_SIZES = (16, 32, 64, 128)


def assert_form_matches(name: str, form: Form, values: Values, *, turn: int | None = None, note: object) -> None:
    """At every chunk size; interpreted kernels at 64, or where tests come in turns, at another one each turn."""
    module = emitted(name)
    expected = truth(module, values)
    sizes = CHUNK_SIZES if form == CHUNK else (64,) if turn is None else (CHUNK_SIZES[turn % 4],)
    for chunk_size in sizes:
        assert_matches(run(module, form, values, chunk_size=chunk_size), expected, note=f"{note} chunk {chunk_size}")


@over(DECAYED)
def test_constant_log_decay_of_any_strength(name: str, form: Form) -> None:
    for turn, strength in enumerate(STEPPED if form == RECURRENT_TRITON else STRENGTHS):
        values = draw(emitted(name), T=200, H=1, log_decay=strength)
        assert_form_matches(name, form, values, turn=turn if form == CHUNK_TRITON else None, note=strength)


@over(("learned_decay", *GATES))
def test_at_strength_20_only_the_current_token_is_left(name: str, form: Form) -> None:
    module = emitted(name)
    values = draw(module, T=200, H=1, log_decay=-20.0)
    o = call(module, form, values)["o"]
    q, k, v = (values[n].double() for n in "qkv")
    alone = (q * k).sum(-1, keepdim=True) * v * q.shape[-1] ** -0.5
    assert relative_error(o, alone) <= 1e-6


@over(GATES)
def test_a_jump_of_minus_100_at_every_16th_token(name: str, form: Form) -> None:
    module = emitted(name)
    jumps = torch.where(torch.arange(200) % 16 == 15, -100.0, 0.0).reshape(1, 200, 1)
    values = draw(module, T=200, H=1, log_decay=jumps)
    assert_form_matches(name, form, values, note="jumps")


@over(["gla", "gla_value", "gla_outer"])
def test_one_channel_decays_and_the_others_do_not(name: str, form: Form) -> None:
    channels = torch.zeros(16)
    channels[3] = -20
    assert_form_matches(name, form, draw(emitted(name), T=200, H=1, V=16, log_decay=channels), note="one channel")


@over(["learned_decay", "simple_gla"])
def test_scalar_gate_of_minus_4(name: str, form: Form) -> None:
    """Above the diagonal of a chunk of 64 the exponents reach +252: the mask enters before the exponential."""
    module = emitted(name)
    values = draw(module, T=200, H=1, log_decay=-4.0)
    assert_matches(run(module, form, values, chunk_size=64), truth(module, values))


@over(GATES)
def test_gradients_stay_right_with_gate_logits_100_times_normal(name: str, form: Form) -> None:
    module = emitted(name)
    values = draw(module, T=256, H=1)
    gates = profile(module).gates
    for n in gates:
        values[n] = values[n] * 100
    state = draw_state(module, values)
    expected = truth(module, values, state)
    found = run(module, form, values, state)
    assert_matches(found, expected)
    assert all(relative_error(found[f"d {n}"], expected[f"d {n}"]) <= 1e-5 for n in gates)


@over(DECAYED)
def test_a_ragged_tail_does_not_decay_the_state(name: str, form: Form) -> None:
    """A gate activation turns the zeros of a padded row into a decay: the final state must not see it."""
    module = emitted(name)
    values = draw(module, T=70, H=1)
    state = draw_state(module, values, size=10.0)
    found = run(module, form, values, state, loss="state", chunk_size=64)
    assert_matches(found, truth(module, values, state, loss="state"))


@over(("learned_decay", *GATES))
def test_no_decay_equals_the_undecayed_operator(name: str, form: Form) -> None:
    module = emitted(name)
    values = draw(module, T=100, H=1)
    value = profile(module).level(0.0)
    o = {}
    for never in (value, math.copysign(math.inf, value)):
        o[never] = call(module, form, without_decay(module, values, never))["o"]
        q, k, v = (values[n].double() for n in "qkv")
        scores = torch.einsum("bthk,bihk->bhti", q, k).tril() * q.shape[-1] ** -0.5
        assert relative_error(o[never], torch.einsum("bhti,bihv->bthv", scores, v)) <= 1e-5
    assert torch.equal(*o.values())


@over(GATES)
def test_no_decay_at_every_second_token(name: str, form: Form) -> None:
    module = emitted(name)
    values = draw(module, T=100, H=1)
    for n in profile(module).gates:
        values[n][:, ::2] = 1e4
    assert_form_matches(name, form, values, note="every second")


@over(GATES)
def test_a_gate_of_minus_infinity_is_a_hard_reset(name: str, form: Form) -> None:
    """It equals running the parts separately, with finite gradients; the gate itself gets none."""
    module = emitted(name)
    values = draw(module, T=70, H=1)
    cuts = (20, 41, 64)
    gates = profile(module).gates
    for n in gates:
        values[n][:, list(cuts)] = -math.inf
    found = run(module, form, values, loss="output")
    assert all(bool(x.isfinite().all()) for x in found.values())
    assert not any(found[f"d {n}"][:, list(cuts)].any() for n in gates)
    bounds = (0, *cuts, 70)
    for begin, end in zip(bounds, bounds[1:], strict=False):
        alone = {n: x[:, begin:end].double() for n, x in values.items()}
        for n in gates:
            alone[n][:, 0] = 0.0  # the first gate decays an empty state
        o, _ = module.naive(**alone)
        assert relative_error(found["o"][:, begin:end], o) <= 1e-5


@over(["gla", "gla_value"])
def test_a_reset_of_one_channel_leaves_the_others(name: str, form: Form) -> None:
    module = emitted(name)
    values = draw(module, T=70, H=1)
    values["g"][:, 30, :, 5] = -math.inf
    finite = {n: x.clone() for n, x in values.items()}
    finite["g"][:, 30, :, 5] = -1e9
    found = run(module, form, values, loss="output")
    assert all(bool(x.isfinite().all()) for x in found.values())
    assert_same_bits(found, run(module, form, finite, loss="output"))
