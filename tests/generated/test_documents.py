"""Packed documents (cu_seqlens): each starts from its own state and ends in its own, whatever its length."""

from __future__ import annotations

import pytest
import torch

from tests.generated.catalogue import CHUNK_TRITON, REPRESENTATIVES, Form, each_form, emitted, over
from tests.generated.inputs import draw, draw_state
from tests.generated.support import assert_matches, assert_same_bits, call, cotangents, in_float64, run, truth
from tests.generated.ways import separately

PACKED = {
    "ragged": (0, 5, 21, 85, 86, 100),
    "with empty documents": (0, 0, 17, 17, 17, 90, 90),
    "one document": (0, 70),
    "a token each": (0, 1, 2, 3, 4),
}


@pytest.mark.parametrize("packing", PACKED)
@pytest.mark.parametrize("form", [pytest.param(Form("naive", "torch"), id="naive-torch"), *each_form()])
@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_packed_documents_equal_separate_runs(name: str, form: Form, packing: str) -> None:
    module = emitted(name)
    offsets = PACKED[packing]
    values = draw(module, T=offsets[-1], H=1 if form.interpreted else 2, K=8, V=4)
    state = draw_state(module, values, N=len(offsets) - 1)
    found = run(module, form, values, state, cu_seqlens=torch.tensor(offsets))
    assert_matches(found, separately(module, values, state, offsets), note=packing)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("form", each_form())
def test_offsets_may_be_int32_or_int64(form: Form, dtype: torch.dtype) -> None:
    module = emitted("simple_gla")
    values = draw(module, T=30, H=1)
    offsets = torch.tensor([0, 13, 30], dtype=dtype)
    expected = call(module, Form("naive", "torch"), in_float64(values), cu_seqlens=offsets)
    assert_matches(call(module, form, values, cu_seqlens=offsets), expected)


@over(REPRESENTATIVES)
def test_an_empty_document_ends_in_its_initial_state(name: str, form: Form) -> None:
    module = emitted(name)
    values = draw(module, T=20, H=1)
    state = draw_state(module, values, N=3)
    found = call(module, form, values, state, cu_seqlens=torch.tensor([0, 12, 12, 20]))
    assert_same_bits({n: found[n][1] for n in state}, {n: x[1] for n, x in state.items()})


@over(REPRESENTATIVES)
def test_only_empty_documents(name: str, form: Form) -> None:
    module = emitted(name)
    values = draw(module, T=0, H=2, K=8, V=4)
    state = draw_state(module, values, N=3)
    found = run(module, form, values, state, cu_seqlens=torch.tensor([0, 0, 0, 0]))
    assert found["o"].shape == (1, 0, 2, 4)
    assert_same_bits(found, state)
    differentiable = [n for n in state if f"d {n}" in found]
    assert "S" in differentiable
    assert_same_bits({n: found[f"d {n}"] for n in differentiable}, {n: cotangents(found)[n] for n in differentiable})


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
