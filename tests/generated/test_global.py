"""Operators that read over all positions: no order, no state, sums over pieces of time, documents on their own."""

from __future__ import annotations

import dataclasses
from types import ModuleType

import pytest
import torch

from recgen.bench.contenders import Size, generated
from recgen.bench.memory import growth, peak_bytes
from recgen.verify import Case
from recgen.verify.check import check
from recgen.verify.layouts import LAYOUTS
from recgen.verify.reference import References
from tests.generated.catalogue import (
    CARRYING,
    CHUNK,
    CHUNK_TRITON,
    NAIVE,
    OPERATORS,
    PARALLEL,
    Form,
    emitted,
    over,
    profile,
)
from tests.generated.equations import cancelling_terms
from tests.generated.inputs import draw
from tests.generated.support import assert_matches, assert_same_bits, call, cotangents, run, truth

NAMES = tuple(name for name in OPERATORS if name not in CARRYING)
FORMS = (PARALLEL, CHUNK, CHUNK_TRITON)
LENGTHS = (1, 2, 15, 16, 17, 63, 64, 65, 100)
OFFSETS = (0, 0, 5, 38, 38, 39, 70, 70)


def test_there_are_such_operators() -> None:
    assert "linear_attention_global" in NAMES


@over(NAMES, FORMS)
def test_every_length_matches_naive(name: str, form: Form) -> None:
    module = emitted(name)
    for T in LENGTHS:
        values = draw(module, T=T, H=1, K=16, V=8, seed=T)
        found, expected = run(module, form, values, chunk_size=16), truth(module, values)
        terms = cancelling_terms(name, values, cotangents(expected)["o"]) if T == 1 else None
        assert_matches(found, expected, terms=terms, note=f"T={T}")


@over(NAMES, (*FORMS, NAIVE))
def test_no_tokens_give_no_outputs(name: str, form: Form) -> None:
    found = run(emitted(name), form, draw(emitted(name), B=2, T=0, H=2, K=8, V=4))
    assert found["o"].shape == (2, 0, 2, 4)
    assert all(x.numel() == 0 for x in found.values())


@pytest.mark.interpreter
@pytest.mark.parametrize("piece", [16, 64])
@pytest.mark.parametrize("name", NAMES)
def test_pieces_add_up_to_the_whole(name: str, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many pieces of each sequence, the last one ragged; the sums over them are those of the sequence."""
    module = emitted(name)
    monkeypatch.setattr(module, "SEGMENT", piece)
    values = draw(module, B=2, T=150, H=2, K=7, V=9)
    assert_matches(run(module, CHUNK_TRITON, values, chunk_size=16), truth(module, values))
    packed = draw(module, T=OFFSETS[-1], H=2, K=7, V=9)
    offsets = torch.tensor(OFFSETS)
    found = run(module, CHUNK_TRITON, packed, chunk_size=16, cu_seqlens=offsets)
    assert_matches(found, truth(module, packed, cu_seqlens=offsets))


@over(NAMES, (*FORMS, NAIVE))
def test_tokens_have_no_order(name: str, form: Form) -> None:
    """Outputs and gradients move along with the tokens."""
    module = emitted(name)
    values = draw(module, T=33, H=1, K=4, V=3, dtype=torch.float64 if form.backend == "torch" else torch.float32)
    order = torch.randperm(33, generator=torch.Generator().manual_seed(0))
    moved = {n: x[:, order] if n in module.INPUTS else x for n, x in values.items()}
    found, again = call(module, form, values)["o"][:, order], call(module, form, moved)["o"]
    torch.testing.assert_close(found, again, rtol=1e-5, atol=1e-7)


@over(NAMES, (*FORMS, NAIVE))
def test_the_first_token_sees_the_last(name: str, form: Form) -> None:
    module = emitted(name)
    leaves = {n: x.requires_grad_() for n, x in draw(module, T=40, H=1, K=4, V=3).items()}
    call(module, form, leaves)["o"][:, 0].sum().backward()
    assert all(leaves[n].grad[:, -1].abs().max() > 0 for n in ("k", "v"))
    assert not leaves["q"].grad[:, 1:].any()


@over(NAMES, (*FORMS, NAIVE))
def test_documents_see_nothing_of_each_other(name: str, form: Form) -> None:
    """Each gives the bits that it gives with other neighbours, and none of its gradients comes from them."""
    module = emitted(name)
    values = draw(module, T=OFFSETS[-1], H=1, K=5, V=4)
    offsets = torch.tensor(OFFSETS)
    other = {n: x.clone() for n, x in values.items()}
    for n in module.INPUTS:
        other[n][:, 5:38] = 3 - other[n][:, 5:38]
    found, again = (run(module, form, x, cu_seqlens=offsets, chunk_size=16) for x in (values, other))
    kept = torch.cat([torch.arange(5), torch.arange(38, 70)])
    assert_same_bits({n: x[:, kept] for n, x in again.items()}, {n: x[:, kept] for n, x in found.items()})
    assert not torch.equal(found["o"][:, 5:38], again["o"][:, 5:38])
    alone = {n: x[:, 38:39].contiguous() if n in module.INPUTS else x for n, x in values.items()}
    torch.testing.assert_close(found["o"][:, 38:39], call(module, form, alone, chunk_size=16)["o"], rtol=1e-6, atol=0)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@over(NAMES, FORMS)
def test_16_bits_are_as_accurate_as_eager_code(name: str, form: Form, dtype: str) -> None:
    case = Case(form=form.name, backend=form.backend, dtype=dtype, T=50, H=2, K=32, V=16)
    outcome = check(References(profile(emitted(name))), case)
    assert outcome.ok and not outcome.refused, outcome.reasons()


@over(NAMES, (*FORMS, NAIVE))
def test_results_have_the_dtypes_of_their_inputs(name: str, form: Form) -> None:
    module = emitted(name)
    values = {n: x.to(torch.bfloat16 if n == "v" else torch.float32) for n, x in draw(module, T=20).items()}
    assert run(module, form, values)["o"].dtype == torch.bfloat16  # and every gradient that of its input
    if form.backend == "torch":
        wide = run(module, form, draw(module, T=20, dtype=torch.float64))
        assert all(x.dtype == torch.float64 for x in wide.values())


@pytest.mark.parametrize("layout", [n for n in LAYOUTS if n != "contiguous"])
@over(NAMES, FORMS)
def test_layouts_change_nothing(name: str, form: Form, layout: str) -> None:
    case = Case(form=form.name, backend=form.backend, T=20, H=2, K=5, V=6, layout=layout, grad_layout=layout)
    outcome = check(References(profile(emitted(name))), case)
    assert outcome.ok and not outcome.refused, outcome.reasons()


@over(NAMES, FORMS)
def test_a_form_repeats_itself_to_the_bit(name: str, form: Form) -> None:
    module = emitted(name)
    values = draw(module, T=40, H=1)
    assert_same_bits(run(module, form, values), run(module, form, values))


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_a_state_is_there(name: str) -> None:
    module = emitted(name)
    assert module.STATE == {} and module.MODES == ("naive", "parallel", "chunk")
    assert not any(hasattr(module, n) for n in ("State", "step", "recurrent"))
    values = draw(module, T=4)
    for form in ("operator", "naive", "parallel", "chunk"):
        for option in ({"initial_state": None}, {"output_final_state": True}):
            with pytest.raises(TypeError, match=next(iter(option))):
                getattr(module, form)(**values, **option)
        assert getattr(module, form)(**values)[1] is None
    with pytest.raises(ValueError, match="mode: .*'recurrent'"):
        module.operator(**values, mode="recurrent")
    with pytest.raises(ValueError, match="parallel form has no kernel"):
        module.operator(**values, mode="parallel", backend="triton")
    with pytest.raises(ValueError, match="cu_seqlens"):
        module.operator(**values, cu_seqlens=torch.tensor([0, 3]))


@over(NAMES, FORMS)
def test_gradients_are_made_where_they_are_needed(name: str, form: Form) -> None:
    module = emitted(name)
    values = draw(module, T=20, H=1, K=5, V=4)
    expected = run(module, form, values)
    for needed in module.INPUTS:
        leaves = {n: x.detach().clone().requires_grad_(n == needed) for n, x in values.items()}
        o = call(module, form, leaves)["o"]
        o.backward(cotangents({"o": o})["o"])
        assert torch.equal(leaves[needed].grad, expected[f"d {needed}"])
        assert all(x.grad is None for n, x in leaves.items() if n != needed)


@over(NAMES, (PARALLEL, CHUNK, NAIVE))
def test_second_derivatives_are_right_or_refused(name: str, form: Form) -> None:
    module = emitted(name)
    values = draw(module, T=6, H=1, K=3, V=2, dtype=torch.float64)
    leaves = [x.requires_grad_() for x in values.values()]
    o = call(module, form, values)["o"]
    first = torch.autograd.grad((o * o).sum(), leaves, create_graph=True)
    if form != NAIVE:
        with pytest.raises(RuntimeError, match="second derivatives"):
            first[0].sum().backward()
        return
    assert torch.autograd.gradgradcheck(lambda *x: module.naive(*x)[0], leaves)


def memory(module: ModuleType, form: str) -> float:
    """The exponent with which the memory of forward and backward grows with time."""
    size, lengths = Size(H=1, K=8, V=8), (1024, 4096)
    return growth(lengths, [float(peak_bytes(generated(module, size.at(T), form))) for T in lengths])


@pytest.mark.parametrize("name", NAMES)
def test_memory_is_linear_in_time(name: str) -> None:
    assert memory(emitted(name), "chunk") < 1.1
    assert memory(emitted(name), "parallel") > 1.5


@pytest.mark.parametrize("name", NAMES)
def test_what_concerns_a_state_is_left_out_of_verification(name: str) -> None:
    case = Case(initial=True, split=3, then="chunk", loss="state")
    fitted = profile(emitted(name)).fitting(case)
    assert fitted == dataclasses.replace(case, initial=False, final=False, split=None, loss="output")
    assert profile(emitted("gla")).fitting(case) == case
