"""Activation checkpointing: the operator is recomputed, or saved where its name is on the list."""

from __future__ import annotations

from functools import partial
from types import ModuleType

import pytest
import torch
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

from tests.generated.catalogue import OPERATORS, emitted
from tests.generated.compiled import assert_equal, forward_of, small, training_step


class Counted:
    """How often a function of a module runs while the block does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str) -> None:
        self.count, inner = 0, getattr(module, name)

        def call(*arguments: object) -> object:
            self.count += 1
            return inner(*arguments)

        monkeypatch.setattr(module, name, call)


def block(forward, values, state):
    """The operator between other operations, as in a layer."""
    outputs = forward({n: x * 1 for n, x in values.items()}, state)
    return [outputs[0].tanh(), *outputs[1:]]


@pytest.mark.parametrize("name", OPERATORS)
def test_plain_checkpointing_recomputes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = emitted(name)
    values, state = small(module)
    run = partial(block, forward_of(module))
    expected = training_step(run, values, state)
    calls = Counted(monkeypatch, module, "_chunk_forward_torch")
    found = training_step(partial(checkpoint, run, use_reentrant=False), values, state)
    assert_equal(found, expected)
    assert calls.count == 2


@pytest.mark.parametrize("name", OPERATORS)
def test_selective_checkpointing_saves_what_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = emitted(name)
    values, state = small(module)
    run = partial(block, forward_of(module))
    expected = training_step(run, values, state)
    calls = Counted(monkeypatch, module, "_chunk_forward_torch")
    contexts = partial(create_selective_checkpoint_contexts, list(module.OPS.values()))
    found = training_step(partial(checkpoint, run, use_reentrant=False, context_fn=contexts), values, state)
    assert_equal(found, expected)
    assert calls.count == 1


@pytest.mark.usefixtures("nothing_compiled")
def test_selective_checkpointing_of_what_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    module = emitted("simple_gla")
    values, state = small(module)
    run = partial(block, forward_of(module))
    expected = training_step(run, values, state)
    calls = Counted(monkeypatch, module, "_chunk_forward_torch")
    contexts = partial(create_selective_checkpoint_contexts, [module.OPS["forward"]])

    def saved(values, state):
        return checkpoint(run, values, state, use_reentrant=False, context_fn=contexts)

    assert_equal(training_step(torch.compile(saved, fullgraph=True, backend="aot_eager"), values, state), expected)
    assert calls.count == 1
