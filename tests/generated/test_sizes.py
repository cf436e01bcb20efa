"""Any width and any count: tiny ones, odd ones, the largest, and long sums; float32 products are exact."""

from __future__ import annotations

import pytest
import torch

from tests.generated.catalogue import (
    CHUNK,
    CHUNK_TRITON,
    FORMS,
    GATES,
    NAIVE,
    OPERATORS,
    RECURRENT_TRITON,
    REPRESENTATIVES,
    TORCH_FORMS,
    TRITON_FORMS,
    Form,
    axes,
    each_form,
    emitted,
    over,
    profile,
)
from tests.generated.equations import cancelling_terms
from tests.generated.inputs import draw, draw_state, without_decay
from tests.generated.support import assert_matches, call, cotangents, run, truth

NARROW = ((1, 1), (1, 16), (16, 1), (2, 2), (2, 16), (4, 8), (8, 4), (16, 2), (16, 16))


@pytest.mark.parametrize("T", [1, 2, 3, 8, 15])
@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_narrow_heads_and_short_sequences_in_torch(name: str, T: int) -> None:
    module = emitted(name)
    for K, V in NARROW:
        values = draw(module, T=T, H=1, K=K, V=V, seed=K * 17 + V)
        expected = truth(module, values)
        terms = cancelling_terms(name, values, cotangents(expected)["o"])
        for form in TORCH_FORMS:
            assert_matches(run(module, form, values), expected, terms=terms, note=f"{form} K={K} V={V}")


@pytest.mark.interpreter
@pytest.mark.parametrize("sizes", [(1, 1), (2, 16), (4, 8), (16, 1), (8, 4)], ids=str)
@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_narrow_heads_and_short_sequences_in_triton(name: str, sizes: tuple[int, int]) -> None:
    """Right, or refused with the smallest size that works."""
    module = emitted(name)
    for T in (1, 2, 15):
        values = draw(module, T=T, H=1, K=sizes[0], V=sizes[1])
        expected = truth(module, values)
        terms = cancelling_terms(name, values, cotangents(expected)["o"])
        for form in TRITON_FORMS:
            try:
                found = run(module, form, values)
            except ValueError as error:
                assert any(n in str(error) for n in module.INPUTS) and "16" in str(error), error
                continue
            assert_matches(found, expected, terms=terms, note=f"{form} T={T}")


@pytest.mark.parametrize("form", each_form())
@pytest.mark.parametrize("sizes", [(3, 33), (33, 3), (20, 24)], ids=str)
@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_widths_that_are_no_powers_of_two(name: str, form: Form, sizes: tuple[int, int]) -> None:
    module = emitted(name)
    values = draw(module, T=37, H=1 if form.interpreted else 2, K=sizes[0], V=sizes[1])
    state = draw_state(module, values)
    assert_matches(run(module, form, values, state), truth(module, values, state))


@over([name for name in OPERATORS if any("H" in a for a in axes(emitted(name)).values())], (NAIVE, *FORMS))
def test_no_heads_have_no_output_and_no_gradient(name: str, form: Form) -> None:
    module = emitted(name)
    values = draw(module, B=2, T=5, H=0, K=8, V=4)
    state = draw_state(module, values)
    found = run(module, form, values, state)
    assert found["o"].shape == (2, 5, 0, 4)
    assert {n: found[n].shape for n in state} == {n: x.shape for n, x in state.items()}
    assert all(not found[f"d {n}"].any() for n in values)
    assert run(module, form, values)["o"].shape == (2, 5, 0, 4)
    if state:
        token = {n: x[:, 0] if n in module.INPUTS else x for n, x in values.items()}
        assert module.step(**token, state=module.State(**state))[0].shape == (2, 0, 4)


@pytest.mark.interpreter
@pytest.mark.parametrize("form", TRITON_FORMS, ids=str)
@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_integer_kernel_arguments_of_1_16_and_17(name: str, form: Form) -> None:
    """Triton compiles 1 and multiples of 16 into variants of their own: see test_offline for their compilation."""
    module = emitted(name)
    usual = {"B": 1, "T": 5, "H": 2, "K": 8, "V": 4}
    inside = {a for n in profile(module).drivers for a in axes(module)[n]} & set("KV")
    for axis in "TKV" if inside else usual:
        for size in (1, 16, 17):
            values = draw(module, **{**usual, axis: size})
            expected = truth(module, values)
            terms = cancelling_terms(name, values, cotangents(expected)["o"])
            assert_matches(run(module, form, values), expected, terms=terms, note=f"{axis}={size}")


@pytest.mark.interpreter
@pytest.mark.parametrize("N", [1, 16, 17])
@pytest.mark.parametrize("form", TRITON_FORMS, ids=str)
def test_counts_of_documents_of_1_16_and_17(form: Form, N: int) -> None:
    module = emitted("simple_gla")
    values = draw(module, T=3 * N, H=1)
    offsets = torch.arange(N + 1) * 3
    assert_matches(run(module, form, values, cu_seqlens=offsets), truth(module, values, cu_seqlens=offsets))


@over(REPRESENTATIVES)
def test_float32_at_width_128(name: str, form: Form) -> None:
    module = emitted(name)
    values = draw(module, T=33, H=1, K=128, V=128)
    assert_matches(run(module, form, values), truth(module, values))


@over(("linear_attention", *GATES))
def test_one_hot_products_are_exact(name: str, form: Form) -> None:
    """4097 needs 13 bits: products in TF32 (11 bits) or bfloat16 (8 bits) would not return it."""
    module = emitted(name)
    values = draw(module, T=16, H=1, K=128, V=128)
    hot = torch.eye(16, 128).reshape(1, 16, 1, 128)
    features = torch.where(hot > 0, 0.0, -1000.0) if name == "linear_attention" else hot
    for n in ("q", "k"):
        values[n].copy_(features)
    values["v"].fill_(4097.0)
    o = call(module, form, values, scale=1.0)["o"]
    expected = 4097.0 / (1 + 1e-6) if name == "linear_attention" else 4097.0
    torch.testing.assert_close(o, torch.full_like(o, expected), rtol=2e-7 if name == "linear_attention" else 0, atol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@over(("linear_attention", "learned_decay", *GATES), (CHUNK, CHUNK_TRITON))
def test_a_sum_of_5000_ones_in_16_bits(name: str, form: Form, dtype: torch.dtype) -> None:
    """A sum kept in 16 bits would stop at 256 (bfloat16) or 2048 (float16)."""
    module = emitted(name)
    values = {n: torch.ones_like(x) for n, x in draw(module, T=5000, H=1, K=1, V=1, dtype=dtype).items()}
    values = without_decay(module, values)
    found = call(module, form, values, chunk_size=128)
    total = 1.0 if name == "linear_attention" else 5000.0
    assert found["S"].dtype == torch.float32
    assert found["S"].item() == (10000.0 if name == "linear_attention" else 5000.0)
    assert found["o"].dtype == dtype and torch.equal(found["o"][0, -1, 0], torch.tensor([total], dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", ["linear_attention", "learned_decay", *GATES])
def test_steps_of_ones_in_16_bits(name: str, dtype: torch.dtype) -> None:
    """From a state that holds 2000 of them, on to where float16 has no room for one more, nor had bfloat16 before."""
    module = emitted(name)
    values = {n: torch.ones_like(x) for n, x in draw(module, T=1, H=1, K=1, V=1, dtype=dtype).items()}
    values = without_decay(module, values)
    token = {n: x[:, 0] if n in module.INPUTS else x for n, x in values.items()}
    one = 2.0 if name == "linear_attention" else 1.0
    state = module.State(*(torch.full_like(x, 2000 * one) for x in draw_state(module, values).values()))
    with torch.no_grad():
        for _ in range(100):
            o, state = module.step(**token, state=state)
    assert all(x.dtype == torch.float32 and x.item() == 2100 * one for x in state)
    assert o.dtype == dtype
    assert o.item() == torch.tensor(1.0 if name == "linear_attention" else 2100.0, dtype=dtype).item()


@pytest.mark.interpreter
def test_recurrent_in_triton_sums_many_ones_in_float32() -> None:
    module = emitted("simple_gla")
    values = {n: torch.ones_like(x) for n, x in draw(module, T=600, H=1, K=1, V=1, dtype=torch.bfloat16).items()}
    values["g"].fill_(1e4)
    found = call(module, RECURRENT_TRITON, values)
    assert found["S"].item() == 600.0 and found["o"][0, -1].item() == torch.tensor(600.0).bfloat16().item()
