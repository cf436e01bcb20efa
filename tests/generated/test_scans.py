"""Operators whose time is scanned: against the papers' token loops, in every form, on both backends."""

from __future__ import annotations

import textwrap
from types import ModuleType

import pytest
import torch
from torch import Tensor

import recgen
from recgen.spec import read_text
from tests.algebra.test_scan import SPECS
from tests.generated.scan_equations import LOOPS
from tests.generated.support import FORMS, Form, assert_matches, each_form, emitted, guarded

MATRIX, VECTOR = {"H": 2, "K": 5, "V": 7}, {"D": 9}


def sizes_of(module: ModuleType) -> dict[str, int]:
    return VECTOR if list(module.STATE.values()) == ["N D"] else MATRIX


def drawn(module: ModuleType, T: int, *, B: int = 2, N: int | None = None, seed: int = 0) -> dict[str, Tensor]:
    """Inputs, parameters moved away from their initial values, and an initial state "S", in float32."""
    generator = torch.Generator().manual_seed(seed)
    values = module.sample_inputs(B=B, T=T, seed=seed, **sizes_of(module))
    moved = {n: x + 0.1 * torch.randn(x.shape, generator=generator) for n, x in values.items() if n in module.PARAMS}
    sizes = {"N": B if N is None else N, **sizes_of(module)}
    state = torch.randn([sizes[a] for a in module.STATE["S"].split()], generator=generator)
    return {n: guarded(x) for n, x in {**values, **moved, "S": state}.items()}


def results(function, values: dict[str, Tensor], dtype: torch.dtype, **options: object) -> dict[str, Tensor]:
    """Output, final state and all gradients of one call that takes the values by name and the state last."""
    leaves = {n: x.to(dtype).requires_grad_() for n, x in values.items()}
    o, end = function(leaves, **options)
    generator = torch.Generator().manual_seed(7)
    cotangents = [torch.randn(x.shape, generator=generator).to(dtype) for x in (o, end)]
    gradients = torch.autograd.grad([o, end], list(leaves.values()), cotangents, allow_unused=True)
    return {"o": o.detach(), "S": end.detach(), **{
        f"d {n}": torch.zeros_like(x) if d is None else d
        for (n, x), d in zip(leaves.items(), gradients, strict=True)}}


def form_of(module: ModuleType, form: str, backend: str):
    def call(leaves: dict[str, Tensor], **options: object) -> tuple[Tensor, Tensor]:
        inputs = {n: x for n, x in leaves.items() if n != "S"}
        o, end = getattr(module, form)(
            **inputs, initial_state=(leaves["S"],), output_final_state=True, backend=backend, **options)
        return o, end.S
    return call


def naive(module: ModuleType, values: dict[str, Tensor], **options: object) -> dict[str, Tensor]:
    return results(form_of(module, "naive", "torch"), values, torch.float64, **options)


def published(name: str):
    return lambda leaves: LOOPS[name](**{n: x for n, x in leaves.items() if n != "S"}, state=leaves["S"])


@pytest.mark.parametrize("name", LOOPS)
def test_naive_is_the_published_recurrence(name: str) -> None:
    module = emitted(name)
    values = drawn(module, 11)
    expected = results(published(name), values, torch.float64)
    assert_matches(naive(module, values), expected, torch.float64)


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("form", each_form(FORMS))
def test_every_form_is_the_published_recurrence(name: str, form: Form) -> None:
    module = emitted(name)
    values = drawn(module, 37 if form.interpreted else 70)
    options = {"chunk_size": 16} if form.name == "chunk" else {}
    found = results(form_of(module, form.name, form.backend), values, torch.float32, **options)
    assert_matches(found, results(published(name), values, torch.float64), note=form)


@pytest.fixture(scope="module", params=SPECS, ids=lambda text: text.replace(" ", "-"))
def other(request: pytest.FixtureRequest) -> ModuleType:
    return recgen.load(read_text(f"name: other\n{textwrap.dedent(SPECS[request.param])}\n"))


@pytest.mark.parametrize(("form", "backend"), [
    ("parallel", "torch"), ("chunk", "torch"), ("chunk", "triton"), ("recurrent", "triton")])
def test_every_form_of_other_scans_equals_naive(other: ModuleType, form: str, backend: str) -> None:
    values = drawn(other, 20 if backend == "triton" else 70, B=1)
    options = {"chunk_size": 16} if form == "chunk" else {}
    found = results(form_of(other, form, backend), values, torch.float32, **options)
    assert_matches(found, naive(other, values), note=form)


@pytest.mark.parametrize("name", ["mamba", "rg_lru"])
@pytest.mark.parametrize("backend", ["torch", "triton"])
def test_documents_are_scanned_alone(name: str, backend: str) -> None:
    """Of lengths 0, less than a chunk, whole chunks, and more; each from its own state."""
    module = emitted(name)
    offsets = torch.tensor([0, 0, 3, 35, 52])
    values = drawn(module, 52, B=1, N=4)
    found = results(form_of(module, "chunk", backend), values, torch.float32, chunk_size=16, cu_seqlens=offsets)
    assert_matches(found, naive(module, values, cu_seqlens=offsets))


def test_segments_of_time_hand_over_the_state_and_its_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    module = emitted("mamba")
    values = drawn(module, 70)
    monkeypatch.setattr(module, "STATES", 1)  # a segment is one chunk
    assert len(module._segments(70, 16, values["S"])) == 5
    found = results(form_of(module, "chunk", "torch"), values, torch.float32, chunk_size=16)
    assert_matches(found, naive(module, values))


@pytest.mark.interpreter
def test_spans_of_chunks_share_one_scratch_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    module = emitted("full_gate")
    values = drawn(module, 50)
    monkeypatch.setattr(module, "SCRATCH", 1)  # a span is one chunk
    found = results(form_of(module, "chunk", "triton"), values, torch.float32, chunk_size=16)
    assert_matches(found, naive(module, values))


def test_steps_are_the_recurrence() -> None:
    for name in LOOPS:
        module = emitted(name)
        values = drawn(module, 5)
        state, outputs = module.State(values.pop("S")), []
        start = state
        for t in range(5):
            token = {n: x[:, t] if n in module.INPUTS else x for n, x in values.items()}
            o, state = module.step(**token, state=state)
            outputs.append(o)
        o, end = module.naive(**values, initial_state=start, output_final_state=True)
        torch.testing.assert_close(torch.stack(outputs, 1), o)
        torch.testing.assert_close(state.S, end.S)


def test_a_vector_operator_is_a_layer_with_its_published_initial_values() -> None:
    module = emitted("rg_lru")
    layer = module.Operator(D=64)
    decay = torch.exp(-8 * torch.nn.functional.softplus(layer.lam))
    assert layer.lam.shape == (64,) and bool(((decay >= 0.9) & (decay <= 0.999)).all())
    values = module.sample_inputs(B=2, T=4, D=64)
    assert layer(*(values[n] for n in module.INPUTS))[0].shape == (2, 4, 64)
    assert module.STATE == {"S": "N D"}


def test_mamba_starts_where_its_paper_does() -> None:
    layer = emitted("mamba").Operator(H=2, K=4, V=3)
    assert torch.allclose(layer.A_log, torch.arange(1.0, 5.0).log()[:, None].expand(2, 4, 3))
    step = torch.nn.functional.softplus(layer.dt_bias)
    assert bool(((step > 0.99e-3) & (step < 0.101)).all()) and bool((layer.D == 1).all())


def test_wrong_vectors_are_named() -> None:
    module = emitted("hgrn")
    x = torch.zeros(1, 3, 4)
    with pytest.raises(ValueError, match=r"g: axis D of \[B T D\] is 5"):
        module.operator(x, torch.zeros(1, 3, 5))
    with pytest.raises(ValueError, match=r"initial_state.S: expected shape \[1, 4\] \[N D\]"):
        module.operator(x, x, initial_state=(torch.zeros(1, 2, 4),))
    with pytest.raises(ValueError, match="axis D is empty"):
        module.operator(x[..., :0], x[..., :0])
