"""Packed documents (cu_seqlens): each starts from its own state and ends in its own, whatever its length."""
from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.generated.support import (
    CHUNK_TRITON,
    OPERATORS,
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
    in_float64,
    run,
    truth,
)

PACKED = {
    "ragged": (0, 5, 21, 85, 86, 100),
    "with empty documents": (0, 0, 17, 17, 17, 90, 90),
    "one document": (0, 70),
    "a token each": (0, 1, 2, 3, 4),
}


def separately(name: str, values: Values, state: Values, offsets: tuple[int, ...]) -> Values:
    """`naive` in float64, document by document."""
    module = emitted(name)
    leaves = {n: x.detach().requires_grad_() for n, x in in_float64({**values, **state}).items()}
    outputs: list[Tensor] = []
    finals: dict[str, list[Tensor]] = {n: [] for n in state}
    for i, (begin, end) in enumerate(zip(offsets, offsets[1:], strict=False)):
        part = {n: leaves[n][:, begin:end] if n in module.INPUTS else leaves[n] for n in values}
        start = {n: leaves[n][i:i + 1] for n in state}
        found = call(module, Form("naive", "torch"), part, start) if end > begin else start
        outputs += [found["o"]] if end > begin else []
        for n in state:
            finals[n].append(found[n])
    results = {"o": torch.cat(outputs, 1), **{n: torch.cat(x) for n, x in finals.items()}}
    gradients = torch.autograd.grad(list(results.values()), list(leaves.values()),
                                    [cotangents(results)[n] for n in results])
    return {**{n: x.detach() for n, x in results.items()},
            **{f"d {n}": g for n, g in zip(leaves, gradients, strict=True)}}


@pytest.mark.parametrize("packing", PACKED)
@pytest.mark.parametrize("form", [pytest.param(Form("naive", "torch"), id="naive-torch"), *each_form()])
@pytest.mark.parametrize("name", OPERATORS)
def test_packed_documents_equal_separate_runs(name: str, form: Form, packing: str) -> None:
    module = emitted(name)
    offsets = PACKED[packing]
    values = draw(module, T=offsets[-1], H=1 if form.interpreted else 2, K=8, V=4)
    state = draw_state(module, values, N=len(offsets) - 1)
    found = run(module, form, values, state, cu_seqlens=torch.tensor(offsets))
    assert_matches(found, separately(name, values, state, offsets), note=packing)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("form", each_form())
def test_offsets_may_be_int32_or_int64(form: Form, dtype: torch.dtype) -> None:
    module = emitted("simple_gla")
    values = draw(module, T=30, H=1)
    offsets = torch.tensor([0, 13, 30], dtype=dtype)
    expected = call(module, Form("naive", "torch"), in_float64(values), cu_seqlens=offsets)
    assert_matches(call(module, form, values, cu_seqlens=offsets), expected)


@pytest.mark.parametrize("form", each_form())
@pytest.mark.parametrize("name", OPERATORS)
def test_an_empty_document_ends_in_its_initial_state(name: str, form: Form) -> None:
    module = emitted(name)
    values = draw(module, T=20, H=1)
    state = draw_state(module, values, N=3)
    found = call(module, form, values, state, cu_seqlens=torch.tensor([0, 12, 12, 20]))
    assert_same_bits({n: found[n][1] for n in state}, {n: x[1] for n, x in state.items()})


@pytest.mark.parametrize("form", each_form())
@pytest.mark.parametrize("name", OPERATORS)
def test_only_empty_documents(name: str, form: Form) -> None:
    module = emitted(name)
    values = draw(module, T=0, H=2, K=8, V=4)
    state = draw_state(module, values, N=3)
    found = run(module, form, values, state, cu_seqlens=torch.tensor([0, 0, 0, 0]))
    assert found["o"].shape == (1, 0, 2, 4)
    assert_same_bits(found, state)
    assert_same_bits({n: found[f"d {n}"] for n in state}, {n: cotangents(found)[n] for n in state})


@pytest.mark.parametrize("form", each_form())
def test_without_an_initial_state_every_document_starts_empty(form: Form) -> None:
    module = emitted("gla")
    values = draw(module, T=50, H=1)
    offsets = torch.tensor([0, 20, 20, 50])
    found = run(module, form, values, cu_seqlens=offsets)
    assert found["S"].shape[0] == 3 and not found["S"][1].any()
    assert_matches(found, truth(module, values, cu_seqlens=offsets))


@pytest.mark.interpreter
def test_chunks_do_not_reach_over_documents() -> None:
    """A document gives the same bits alone and behind another one."""
    module = emitted("retnet")
    values = draw(module, T=100, H=1)
    packed = call(module, CHUNK_TRITON, values, cu_seqlens=torch.tensor([0, 37, 100]), chunk_size=32)
    alone = call(module, CHUNK_TRITON, {n: x[:, 37:].contiguous() for n, x in values.items()}, chunk_size=32)
    assert torch.equal(packed["o"][:, 37:], alone["o"])
    assert torch.equal(packed["S"][1:], alone["S"])
