"""Each operator of the catalogue, once in every form: outputs, final state and every gradient are those of `naive`.

Small shapes, a state to start from, and one to end in; alone, cut in two and carried over between forms, and packed.
"""

from __future__ import annotations

import pytest
import torch

from tests.generated.catalogue import (
    CARRYING,
    CHUNK,
    CHUNK_SPLIT,
    CHUNK_TRITON,
    FORMS,
    NAIVE,
    OPERATORS,
    PARALLEL,
    RECURRENT,
    RECURRENT_TRITON,
    TORCH_FORMS,
    TRITON_FORMS,
    Form,
    emitted,
    forms_of,
    over,
)
from tests.generated.inputs import draw, draw_state, weak
from tests.generated.support import assert_matches, leaves_of, results, run, truth
from tests.generated.ways import separately, split_run

PAIRS = [
    (PARALLEL, CHUNK),
    (CHUNK, RECURRENT),
    (RECURRENT, PARALLEL),
    (NAIVE, CHUNK),
    (CHUNK, NAIVE),
    (CHUNK_TRITON, RECURRENT_TRITON),
    (CHUNK_SPLIT, CHUNK_TRITON),
    (RECURRENT_TRITON, CHUNK),
    (RECURRENT, CHUNK_TRITON),
]
DOCUMENTS = (0, 5, 5, 38, 39)


@over(OPERATORS, TORCH_FORMS)
def test_torch_forms_match_naive_in_float64(name: str, form: Form) -> None:
    module = emitted(name)
    values = draw(module, B=2, T=37, H=3, K=7, V=9, dtype=torch.float64)
    state = draw_state(module, values)
    assert_matches(run(module, form, values, state, chunk_size=16), truth(module, values, state), torch.float64)


@over(OPERATORS, (*TRITON_FORMS, CHUNK_SPLIT))
def test_kernels_match_naive(name: str, form: Form) -> None:
    """In float32, which is the widest that they take, against float64."""
    module = emitted(name)
    values = draw(module, B=1, T=37, H=2, K=7, V=9)
    state = draw_state(module, values)
    assert_matches(run(module, form, values, state, chunk_size=16), truth(module, values, state))


@over(OPERATORS)
def test_without_a_state_the_sequence_starts_empty(name: str, form: Form) -> None:
    module = emitted(name)
    values = draw(module, T=20, H=1, K=4, V=3)
    assert_matches(run(module, form, values, chunk_size=16), truth(module, values))


@pytest.mark.parametrize("name", CARRYING)
def test_step_matches_naive(name: str) -> None:
    """One token at a time, differentiable through every step."""
    module = emitted(name)
    values = draw(module, B=2, T=9, H=2, K=8, V=5)
    state = draw_state(module, values)
    leaves, start = leaves_of(values), leaves_of(state)
    carried = module.State(**start)
    outputs = []
    for t in range(9):
        token = {n: x[:, t] if n in module.INPUTS else x for n, x in leaves.items()}
        o, carried = module.step(**token, state=carried)
        outputs.append(o)
    found = results({"o": torch.stack(outputs, 1), **carried._asdict()}, {**leaves, **start})
    assert_matches(found, truth(module, values, state))
    assert all(carried._asdict()[n].dtype == state[n].dtype for n in state)


@pytest.mark.parametrize(
    "pair",
    [
        pytest.param(
            pair, id=f"{pair[0]}-{pair[1]}", marks=[pytest.mark.interpreter] * any(f.interpreted for f in pair)
        )
        for pair in PAIRS
    ],
)
@pytest.mark.parametrize("name", CARRYING)
def test_cut_in_two_and_carried_over_between_forms(name: str, pair: tuple[Form, Form]) -> None:
    """Weak decay, so that a forgotten part of the state shows; the cut lies inside a chunk."""
    if len(forms_of(name, pair)) < 2:
        pytest.skip("it has only one of the two")
    module = emitted(name)
    values = weak(module, T=37, H=1, K=5, V=4)
    state = draw_state(module, values)
    cut = 1 + 9 * PAIRS.index(pair) % 36
    assert_matches(split_run(module, *pair, values, state, cut), truth(module, values, state), note=f"cut at {cut}")


@over(OPERATORS, (*FORMS, CHUNK_SPLIT))
def test_packed_documents_equal_separate_runs(name: str, form: Form) -> None:
    module = emitted(name)
    values = draw(module, T=DOCUMENTS[-1], H=1, K=5, V=4)
    state = draw_state(module, values, N=len(DOCUMENTS) - 1)
    found = run(module, form, values, state, cu_seqlens=torch.tensor(DOCUMENTS), chunk_size=16)
    assert_matches(found, separately(module, values, state, DOCUMENTS))
