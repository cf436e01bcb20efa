"""Modes of torch, and what is done with any layer: no gradients, copies, pickles, state dicts."""

from __future__ import annotations

import copy
import gc
import importlib
import io
import pickle
import weakref
from types import ModuleType

import pytest
import torch

from tests.generated.catalogue import (
    FORMS,
    NAIVE,
    OPERATORS,
    Form,
    axes,
    each_form,
    emitted,
    profile,
)
from tests.generated.inputs import draw


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("form", [NAIVE, *each_form(FORMS)])
def test_without_gradients_nothing_is_kept(form: Form, mode) -> None:
    """Outputs have no history, and inputs are free as soon as the caller lets go of them."""
    module = emitted("linear_attention")
    values = {n: x.requires_grad_() for n, x in draw(module, T=20, H=1, K=8, V=8).items()}
    with mode():
        inside = {n: x * 1 for n, x in values.items()}
        o, end = getattr(module, form.name)(**inside, backend=form.backend, output_final_state=True)
    assert all(x.grad_fn is None and not x.requires_grad for x in (o, *end))
    kept = [weakref.ref(x) for x in inside.values()]
    del inside
    gc.collect()
    assert not any(x() is not None for x in kept)


@pytest.mark.parametrize("form", each_form(FORMS))
def test_a_graph_that_is_let_go_frees_what_it_kept(form: Form) -> None:
    """No cycle holds what the backward pass would have needed."""
    module = emitted("linear_attention")
    inside = {n: x.requires_grad_() * 1 for n, x in draw(module, T=20, H=1, K=8, V=8).items()}
    kept = [weakref.ref(x) for x in inside.values()]
    o, _ = getattr(module, form.name)(**inside, backend=form.backend)
    gc.disable()
    try:
        del inside, o, _
        assert not any(x() is not None for x in kept)
    finally:
        gc.enable()


def layer_of(module: ModuleType) -> torch.nn.Module:
    sizes = profile(module).letters(2, 6, 4, 4, 4)
    letters = sorted({a for n in module.PARAMS for a in axes(module)[n]})
    return module.Operator(**{a: sizes[a] for a in letters})


@pytest.mark.parametrize("name", OPERATORS)
def test_a_layer_is_copied_pickled_and_restored(name: str) -> None:
    """Its parameters are all that it has: a copy gives the same bits, and shares none of them."""
    module = importlib.import_module(f"generated.{name}")
    layer = layer_of(module)
    inputs = {n: x for n, x in draw(module, B=2, T=6, H=4, K=4, V=4).items() if n in module.INPUTS}
    expected = layer(**inputs)[0]
    stream = io.BytesIO()
    torch.save(layer, stream)
    stream.seek(0)
    restored = layer_of(module)
    restored.load_state_dict(copy.deepcopy(layer.state_dict()))
    copies = [copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)), torch.load(stream, weights_only=False), restored]
    for other in copies:
        assert torch.equal(other(**inputs)[0], expected)
        for x, y in zip(layer.state_dict().values(), other.state_dict().values(), strict=True):
            assert torch.equal(x, y) and x.data_ptr() != y.data_ptr()


def test_one_file_under_two_names_gives_the_same() -> None:
    """As a package's module and by its path: operators of their own, equal numbers."""
    packaged, loaded = importlib.import_module("generated.mlstm"), emitted("mlstm")
    assert packaged.OPS["forward"] is not loaded.OPS["forward"]
    values = draw(loaded, T=20, H=1)
    assert torch.equal(packaged.operator(**values)[0], loaded.operator(**values)[0])
