"""The state: cut a sequence anywhere, carry the state through any pair of forms, and nothing changes."""
from __future__ import annotations

import itertools

import pytest
import torch

from tests.generated.equations import cancelling_terms
from tests.generated.support import (
    CHUNK,
    CHUNK_TRITON,
    FORMS,
    OPERATORS,
    RECURRENT_TRITON,
    Form,
    Values,
    assert_matches,
    assert_same_bits,
    call,
    cotangents,
    draw,
    draw_state,
    each_form,
    emitted,
    run,
    truth,
)

CUTS = (1, 16, 63, 64, 65, 69)
TORCH_FORMS = [form for form in FORMS if form.backend == "torch"]
TORCH_PAIRS = list(itertools.product(TORCH_FORMS, repeat=2))
TRITON_PAIRS = [(CHUNK_TRITON, CHUNK_TRITON), (RECURRENT_TRITON, CHUNK_TRITON), (CHUNK_TRITON, RECURRENT_TRITON),
                (RECURRENT_TRITON, RECURRENT_TRITON), (CHUNK, CHUNK_TRITON), (CHUNK_TRITON, CHUNK)]


def weak(name: str, **sizes: int) -> Values:
    """Log-decays from U(−0.02, 0), so that a state of long ago still counts."""
    module = emitted(name)
    generator = torch.Generator().manual_seed(5)
    shape = {"simple_gla": (1, 70, 2), "gla": (1, 70, 2, 16)}.get(name, (2,))
    return draw(module, T=70, H=2, K=16, V=8, log_decay=-0.02 * torch.rand(shape, generator=generator), **sizes)


def split_run(name: str, first: Form, second: Form, values: Values, state: Values, cut: int) -> Values:
    """Forward and backward through two calls."""
    module = emitted(name)
    leaves = {n: x.detach().requires_grad_() for n, x in {**values, **state}.items()}
    parts = [{n: leaves[n][:, piece] if n in module.INPUTS else leaves[n] for n in values}
             for piece in (slice(None, cut), slice(cut, None))]
    before = call(module, first, parts[0], {n: leaves[n] for n in state})
    after = call(module, second, parts[1], {n: before[n] for n in state})
    outputs = {"o": torch.cat([before["o"], after["o"]], 1), **{n: after[n] for n in state}}
    gradients = torch.autograd.grad(list(outputs.values()), list(leaves.values()),
                                    [cotangents(outputs)[n] for n in outputs])
    return {**{n: x.detach() for n, x in outputs.items()},
            **{f"d {n}": g for n, g in zip(leaves, gradients, strict=True)}}


@pytest.mark.parametrize("pair", TORCH_PAIRS, ids=lambda pair: f"{pair[0].name}-{pair[1].name}")
@pytest.mark.parametrize("name", OPERATORS)
def test_cut_anywhere_and_carry_the_state(name: str, pair: tuple[Form, Form]) -> None:
    module = emitted(name)
    values = weak(name)
    state = draw_state(module, values)
    expected = truth(module, values, state)
    for cut in CUTS:
        assert_matches(split_run(name, *pair, values, state, cut), expected, note=f"cut at {cut}")


@pytest.mark.interpreter
@pytest.mark.parametrize("pair", TRITON_PAIRS, ids=lambda pair: f"{pair[0]}-{pair[1]}")
@pytest.mark.parametrize("name", OPERATORS)
def test_cut_anywhere_and_carry_the_state_through_triton(name: str, pair: tuple[Form, Form]) -> None:
    """Each pair at two of the cuts, so that together they cover all."""
    module = emitted(name)
    values = weak(name)
    state = draw_state(module, values)
    expected = truth(module, values, state)
    at = TRITON_PAIRS.index(pair)
    for cut in (CUTS[at], CUTS[(at + 3) % 6]):
        assert_matches(split_run(name, *pair, values, state, cut), expected, note=f"cut at {cut}")


@pytest.mark.parametrize("loss", ["state", "output", "both"])
@pytest.mark.parametrize("form", each_form())
@pytest.mark.parametrize("name", OPERATORS)
def test_loss_on_the_final_state_or_the_output_or_both(name: str, form: Form, loss: str) -> None:
    module = emitted(name)
    for T in (1, 2, 70):
        values = draw(module, T=T, H=1, K=8, V=4)
        found, expected = run(module, form, values, loss=loss), truth(module, values, loss=loss)
        terms = cancelling_terms(name, values, cotangents(expected)["o"]) if T == 1 and loss != "state" else None
        assert_matches(found, expected, terms=terms, note=f"T={T}")


@pytest.mark.parametrize("form", each_form())
@pytest.mark.parametrize("name", OPERATORS)
def test_the_initial_state_has_its_share_in_every_gradient(name: str, form: Form) -> None:
    """Weak decay, and a state that outweighs what the tokens write: a forgotten term cannot hide."""
    module = emitted(name)
    values = weak(name)
    values["v"].mul_(0.01)
    state = draw_state(module, values, size=10.0)
    expected = truth(module, values, state)
    assert_matches(run(module, form, values, state), expected)
    without = truth(module, values)
    decay = [n for n in ("d g", "d w") if n in expected]
    assert all((expected[n] - without[n]).norm() > 0.5 * expected[n].norm() for n in decay)


@pytest.mark.parametrize("form", each_form())
@pytest.mark.parametrize("name", OPERATORS)
def test_a_state_of_zeros_is_no_state(name: str, form: Form) -> None:
    module = emitted(name)
    values = draw(module, T=33, H=1)
    zeros = {n: torch.zeros_like(x) for n, x in draw_state(module, values).items()}
    assert_same_bits(call(module, form, values, zeros), call(module, form, values))


@pytest.mark.parametrize("form", each_form())
@pytest.mark.parametrize("name", OPERATORS)
def test_a_state_may_be_a_plain_tuple(name: str, form: Form) -> None:
    module = emitted(name)
    values = draw(module, T=20, H=1)
    state = draw_state(module, values)
    o, _ = getattr(module, form.name)(**values, initial_state=tuple(state.values()), backend=form.backend,
                                      chunk_size=16)
    assert torch.equal(o, call(module, form, values, state, chunk_size=16)["o"])
