"""Grouped heads: inputs with fewer heads are as if each head were repeated, and get the sum of its gradients."""

from __future__ import annotations

from types import ModuleType

import pytest
import torch

from tests.generated.catalogue import (
    CARRYING,
    CHUNK,
    CHUNK_SPLIT,
    CHUNK_TRITON,
    NAIVE,
    OPERATORS,
    RECURRENT_TRITON,
    REPRESENTATIVES,
    TORCH_FORMS,
    Form,
    emitted,
    forms_of,
    over,
)
from tests.generated.inputs import Values, draw, draw_state
from tests.generated.support import assert_matches, in_float64, run

H = 4
GROUPED = tuple(n for n in OPERATORS if sum("H" in axes for axes in emitted(n).INPUTS.values()) > 1)
WITH_KERNELS = tuple(n for n in (*REPRESENTATIVES, "performer", "full_gate", "linear_attention_global") if n in GROUPED)


def kernels_of(name: str) -> list[Form]:
    """The forms that launch every kernel: the split schedule runs all those of the fused one."""
    return [f for f in (CHUNK_SPLIT, RECURRENT_TRITON) if f in forms_of(name, (f,))] or [CHUNK_TRITON]


def share(module: ModuleType, values: Values, counts: tuple[int, ...] = (2, 4, 1)) -> Values:
    """The same inputs with fewer heads: 2, 4, 1, 2, … of the four."""
    found = dict(values)
    for k, name in enumerate(module.INPUTS):
        found[name] = values[name][:, :, : counts[k % len(counts)]].contiguous()
    return found


def repeated(module: ModuleType, values: Values) -> Values:
    return {n: x.repeat_interleave(H // x.shape[2], 2) if n in module.INPUTS else x for n, x in values.items()}


def expected(module: ModuleType, values: Values, state: Values | None = None, **options: object) -> Values:
    """`naive` in float64 on repeated heads, its gradients summed over the heads that share an input's."""
    found = run(module, NAIVE, in_float64(repeated(module, values)), in_float64(state), **options)
    for name in module.INPUTS:
        d = found[f"d {name}"]
        found[f"d {name}"] = d.unflatten(2, (values[name].shape[2], -1)).sum(3)
    return found


@over(GROUPED, (NAIVE, *TORCH_FORMS))
def test_shared_heads_are_repeated_ones(name: str, form: Form) -> None:
    module = emitted(name)
    for counts in ((2, 4, 1), (4, 2, 2), (1, 1, 4)) if form == CHUNK else ((2, 4, 1),):
        values = share(module, draw(module, B=2, T=18, H=H), counts)
        state = draw_state(module, repeated(module, values))
        assert_matches(run(module, form, values, state), expected(module, values, state), note=counts)


@pytest.mark.interpreter
@pytest.mark.parametrize(("name", "form"), [(n, f) for n in WITH_KERNELS for f in kernels_of(n)], ids=str)
def test_kernels_read_the_head_that_serves(name: str, form: Form) -> None:
    module = emitted(name)
    values = share(module, draw(module, T=17, H=H, K=6, V=4))
    state = draw_state(module, repeated(module, values))
    assert_matches(run(module, form, values, state, chunk_size=16), expected(module, values, state))


@over(("simple_gla", "gla_value"), (CHUNK, CHUNK_SPLIT, RECURRENT_TRITON))
def test_packed_documents_share_heads(name: str, form: Form) -> None:
    module = emitted(name)
    values = share(module, draw(module, T=23, H=H, K=6, V=4))
    offsets = torch.tensor([0, 5, 5, 23])
    state = draw_state(module, repeated(module, values), N=3)
    options = {"cu_seqlens": offsets}
    assert_matches(run(module, form, values, state, **options), expected(module, values, state, **options))


def test_padding_with_shared_heads() -> None:
    module = emitted("gla")
    values = share(module, draw(module, B=2, T=9, H=H, K=6, V=4))
    mask = torch.rand(2, 9, generator=torch.Generator().manual_seed(0)) < 0.6
    o, _ = module.chunk(**values, mask=mask)
    torch.testing.assert_close(o, module.chunk(**repeated(module, values), mask=mask)[0])


@pytest.mark.parametrize("name", [n for n in GROUPED if n in CARRYING])
def test_a_step_shares_heads(name: str) -> None:
    module = emitted(name)
    values = share(module, draw(module, B=2, T=1, H=H, K=6, V=4))

    def token(x: Values) -> Values:
        return {n: t[:, 0] if n in module.INPUTS else t for n, t in x.items()}

    o, state = module.step(**token(values))
    o_expected, state_expected = module.step(**token(repeated(module, values)))
    torch.testing.assert_close(o, o_expected)
    torch.testing.assert_close(tuple(state), tuple(state_expected))


@pytest.mark.parametrize("backend", ["torch", pytest.param("triton", marks=pytest.mark.interpreter)])
def test_a_group_is_summed_before_it_is_rounded(backend: str) -> None:
    """Many heads of one key: in bfloat16 the sum is as good as one number rounded once."""
    module = emitted("simple_gla")
    values = draw(module, T=8, H=32, K=4, V=4)
    values = {n: x.bfloat16()[:, :, : 1 if n == "k" else 32].contiguous() for n, x in values.items()}
    exact = {n: x.double().requires_grad_() for n, x in values.items()}
    o, _ = module.naive(**{n: x.repeat_interleave(32 // x.shape[2], 2) for n, x in exact.items()})
    truth = torch.autograd.grad(o.sum(), exact["k"])[0]
    leaves = {n: x.requires_grad_() for n, x in values.items()}
    found = torch.autograd.grad(module.chunk(**leaves, backend=backend)[0].sum(), leaves["k"])[0]
    assert (found - truth).abs().max() <= 4e-3 * truth.abs().max()


@pytest.mark.parametrize("name", ["simple_gla", "mlstm", "linear_attention_global"])
def test_the_operators_say_so_too(name: str, nothing_compiled: None) -> None:
    """torch.compile sees the right shapes: those of the input with the most heads."""
    module = emitted(name)
    values = share(module, draw(module, T=8, H=H, K=4, V=4))
    compiled = torch.compile(lambda **x: module.chunk(**x)[0], fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(**values), module.chunk(**values)[0])


def test_one_graph_serves_other_numbers_of_heads(nothing_compiled: None) -> None:
    module = emitted("simple_gla")
    compiled = torch.compile(lambda **x: module.chunk(**x)[0], fullgraph=True, dynamic=True, backend="aot_eager")
    for counts in ((2, 4, 1), (4, 2, 2)):
        values = share(module, draw(module, T=8, H=H, K=4, V=4), counts)
        torch.testing.assert_close(compiled(**values), module.chunk(**values)[0])


def test_no_order_of_the_inputs_is_needed() -> None:
    module = emitted("simple_gla")
    values = draw(module, T=5, H=6, K=4, V=4)
    for heads in ((2, 3, 6, 1), (6, 2, 3, 1), (1, 2, 3, 6)):
        shared = {n: x[:, :, :h] for (n, x), h in zip(values.items(), heads, strict=True)}
        full = {n: x.repeat_interleave(6 // x.shape[2], 2) for n, x in shared.items()}
        torch.testing.assert_close(module.chunk(**shared)[0], module.chunk(**full)[0])


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ({"k": 3}, "k: axis H of [B T H K] is 3 in shape (1, 5, 3, 4), but 4 in q; heads are shared where one number"),
        ({"g": 8, "v": 6}, "v: axis H of [B T H V] is 6"),
        ({"k": 0}, "k: axis H of [B T H K] is 0"),
    ],
)
def test_numbers_that_do_not_divide_are_refused(counts: dict[str, int], message: str) -> None:
    module = emitted("simple_gla")
    values = draw(module, T=5, H=8, K=4, V=4)
    values = {n: x[:, :, : counts.get(n, 4)] for n, x in values.items()}
    with pytest.raises(ValueError) as error:
        module.chunk(**values)
    assert message in str(error.value)


def test_parameters_have_all_heads() -> None:
    module = emitted("mamba2")
    values = draw(module, T=5, H=4, K=4, V=4)
    name = next(n for n, axes in module.PARAMS.items() if "H" in axes)
    with pytest.raises(ValueError, match=f"{name}: axis H"):
        module.chunk(**{**values, name: values[name][:2]})
