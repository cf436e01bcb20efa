"""The state: cut a sequence anywhere, carry the state through any pair of forms, and nothing changes."""

from __future__ import annotations

import itertools

import pytest
import torch

from tests.generated.catalogue import (
    CARRYING,
    CHUNK,
    CHUNK_TRITON,
    NAIVE,
    RECURRENT_TRITON,
    REPRESENTATIVES,
    TORCH_FORMS,
    Form,
    emitted,
    over,
    profile,
)
from tests.generated.equations import cancelling_terms
from tests.generated.inputs import draw, draw_state, empty_state, value_inputs, weak
from tests.generated.support import assert_matches, assert_same_bits, call, cotangents, run, truth
from tests.generated.ways import split_run

CUTS = (1, 16, 63, 64, 65, 69)
TORCH_PAIRS = list(itertools.product(TORCH_FORMS, repeat=2))
TRITON_PAIRS = [
    (CHUNK_TRITON, CHUNK_TRITON),
    (RECURRENT_TRITON, CHUNK_TRITON),
    (CHUNK_TRITON, RECURRENT_TRITON),
    (RECURRENT_TRITON, RECURRENT_TRITON),
    (CHUNK, CHUNK_TRITON),
    (CHUNK_TRITON, CHUNK),
]


@pytest.mark.parametrize("pair", TORCH_PAIRS, ids=lambda pair: f"{pair[0].name}-{pair[1].name}")
@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_cut_anywhere_and_carry_the_state(name: str, pair: tuple[Form, Form]) -> None:
    module = emitted(name)
    values = weak(module)
    state = draw_state(module, values)
    expected = truth(module, values, state)
    for cut in CUTS:
        assert_matches(split_run(module, *pair, values, state, cut), expected, note=f"cut at {cut}")


@pytest.mark.interpreter
@pytest.mark.parametrize("pair", TRITON_PAIRS, ids=lambda pair: f"{pair[0]}-{pair[1]}")
@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_cut_anywhere_and_carry_the_state_through_triton(name: str, pair: tuple[Form, Form]) -> None:
    """Each pair at two of the cuts, so that together they cover all."""
    module = emitted(name)
    values = weak(module, H=1)
    state = draw_state(module, values)
    expected = truth(module, values, state)
    at = TRITON_PAIRS.index(pair)
    for cut in (CUTS[at], CUTS[(at + 3) % 6]):
        assert_matches(split_run(module, *pair, values, state, cut), expected, note=f"cut at {cut}")


@pytest.mark.parametrize("loss", ["state", "output", "both"])
@over(REPRESENTATIVES)
def test_loss_on_the_final_state_or_the_output_or_both(name: str, form: Form, loss: str) -> None:
    module = emitted(name)
    for T in (1, 2, 20 if form == RECURRENT_TRITON else 70):
        values = draw(module, T=T, H=1, K=8, V=4)
        found, expected = run(module, form, values, loss=loss), truth(module, values, loss=loss)
        terms = cancelling_terms(name, values, cotangents(expected)["o"]) if T == 1 and loss != "state" else None
        assert_matches(found, expected, terms=terms, note=f"T={T}")


@over(REPRESENTATIVES)
def test_the_initial_state_has_its_share_in_every_gradient(name: str, form: Form) -> None:
    """Weak decay, and a state that outweighs what the tokens write: a forgotten term cannot hide."""
    module = emitted(name)
    values = weak(module)
    for n in value_inputs(module):
        values[n].mul_(0.01)
    state = draw_state(module, values, size=10.0)
    expected = truth(module, values, state)
    assert_matches(run(module, form, values, state), expected)
    without = truth(module, values)
    for n in profile(module).drivers:
        assert (expected[f"d {n}"] - without[f"d {n}"]).norm() > 0.5 * expected[f"d {n}"].norm()


@over([name for name in CARRYING if "position" in emitted(name).STATE], (NAIVE, *TORCH_FORMS))
def test_positions_beyond_what_float32_can_count(name: str, form: Form) -> None:
    module = emitted(name)
    values = draw(module, T=1, H=1, K=4, V=2)
    token = {n: x[:, 0] if n in module.INPUTS else x for n, x in values.items()}
    state = draw_state(module, values) | {"position": torch.tensor([2.0**24], dtype=torch.float64)}
    assert call(module, form, values, state)["position"].item() == 2**24 + 1
    assert module.step(**token, state=module.State(**state))[1].position.item() == 2**24 + 1


@over(REPRESENTATIVES)
def test_an_empty_state_is_no_state(name: str, form: Form) -> None:
    module = emitted(name)
    values = draw(module, T=33, H=1)
    assert_same_bits(call(module, form, values, empty_state(module, values)), call(module, form, values))


@over(REPRESENTATIVES)
def test_a_state_may_be_a_plain_tuple(name: str, form: Form) -> None:
    module = emitted(name)
    values = draw(module, T=20, H=1)
    state = draw_state(module, values)
    o, _ = getattr(module, form.name)(
        **values, initial_state=tuple(state.values()), backend=form.backend, chunk_size=16
    )
    assert torch.equal(o, call(module, form, values, state, chunk_size=16)["o"])
