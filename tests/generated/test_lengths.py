"""Any length: whole chunks, ragged tails, one token, none. A longer sequence never changes what came before it."""

from __future__ import annotations

import pytest
import torch

from tests.generated.catalogue import (
    CHUNK,
    CHUNK_TRITON,
    FORMS,
    PARALLEL,
    RECURRENT,
    RECURRENT_TRITON,
    REPRESENTATIVES,
    Form,
    emitted,
    over,
)
from tests.generated.equations import cancelling_terms
from tests.generated.inputs import draw, draw_state
from tests.generated.support import assert_matches, assert_same_bits, call, cotangents, part, run, truth

LENGTHS = (1, 15, 16, 17, 63, 64, 65, 100, 127, 129, 200)
INTERPRETED = (1, 15, 16, 17, 64, 65, 129)
"""Those at which a kernel's rows and chunks are full, one short and one over."""
CHUNKED = (CHUNK, CHUNK_TRITON)


@over(REPRESENTATIVES)
def test_every_length_matches_naive(name: str, form: Form) -> None:
    """Random gradients of output and final state; inputs lie in buffers of NaN."""
    module = emitted(name)
    options = {"chunk_size": 64} if form in CHUNKED else {}
    for T in INTERPRETED if form.interpreted else LENGTHS:
        values = draw(module, T=T, H=1, K=16, V=8, seed=T)
        found, expected = run(module, form, values, **options), truth(module, values)
        terms = cancelling_terms(name, values, cotangents(expected)["o"]) if T == 1 else None
        assert_matches(found, expected, terms=terms, note=f"T={T}")


@over(REPRESENTATIVES, (CHUNK, RECURRENT, CHUNK_TRITON, RECURRENT_TRITON))
def test_a_longer_sequence_has_the_same_beginning_to_the_bit(name: str, form: Form) -> None:
    """At these widths. Where K · V is no multiple of 4, MKL rounds a batched product by where each result lies, and
    torch rounds a sigmoid by whether its lane of a vector instruction is whole: that changes with the length."""
    module = emitted(name)
    longer = draw(module, T=65, H=2)
    shorter = {n: x.contiguous() for n, x in part(module, longer, None, 64).items()}
    options = {"chunk_size": 64} if form in CHUNKED else {}
    assert torch.equal(call(module, form, longer, **options)["o"][:, :64], call(module, form, shorter, **options)["o"])


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_the_parallel_form_has_the_same_beginning(name: str) -> None:
    """Its matrix products have another length, so only to rounding."""
    module = emitted(name)
    longer = draw(module, T=65, H=2)
    shorter = {n: x.contiguous() for n, x in part(module, longer, None, 64).items()}
    torch.testing.assert_close(
        call(module, PARALLEL, longer)["o"][:, :64], call(module, PARALLEL, shorter)["o"], rtol=1e-4, atol=1e-6
    )


@over(REPRESENTATIVES)
def test_no_tokens_leave_the_state_as_it_was(name: str, form: Form) -> None:
    module = emitted(name)
    values = draw(module, B=2, T=0, H=2, K=8, V=4)
    state = draw_state(module, values)
    found = run(module, form, values, state)
    assert found["o"].shape == (2, 0, 2, 4)
    assert_same_bits(found, state)
    assert_matches(found, truth(module, values, state))
    empty = call(module, form, values)
    nothing = {"m": torch.finfo(torch.float32).min}
    assert all((empty[n] == nothing.get(n, 0)).all() and empty[n].shape == state[n].shape for n in state)


@over(REPRESENTATIVES)
def test_a_form_repeats_itself_to_the_bit(name: str, form: Form) -> None:
    """First, second and third call, forward and backward, of deterministic algorithms: see conftest.py."""
    assert torch.are_deterministic_algorithms_enabled()
    module = emitted(name)
    values = draw(module, T=40, H=1)
    state = draw_state(module, values)
    first = run(module, form, values, state)
    for _ in range(2):
        assert_same_bits(run(module, form, values, state), first)


@over(REPRESENTATIVES, FORMS)
def test_the_final_state_is_returned_only_when_asked_for(name: str, form: Form) -> None:
    module = emitted(name)
    values = draw(module, T=18, H=1)
    function = getattr(module, form.name)
    o, state = function(**values, backend=form.backend)
    same, final = function(**values, backend=form.backend, output_final_state=True)
    assert state is None and isinstance(final, module.State)
    assert torch.equal(o, same)
