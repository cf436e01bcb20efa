"""One token: the kernel and torch, states that are overwritten, and pools of states."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor
from triton.runtime.interpreter import GridExecutor

from tests.generated.catalogue import CARRYING, RECURRENT_TRITON, REPRESENTATIVES, emitted
from tests.generated.inputs import Values, draw, draw_state
from tests.generated.support import assert_matches, run, truth

BACKENDS = ["torch", pytest.param("triton", marks=pytest.mark.interpreter)]
SLOTS = (-1, 0, -1, 3)
"""Before and after the sequence in slot 0 there is none."""


def token_of(module: ModuleType, values: Values, t: int = 0) -> Values:
    return {n: x[:, t].contiguous() if n in module.INPUTS else x for n, x in values.items()}


def tokens(module: ModuleType, B: int = 2, **sizes: int) -> tuple[Values, Any]:
    """A token of B sequences, and the states before it."""
    values = draw(module, B=B, **{"T": 1, "H": 2, "K": 6, "V": 5, **sizes})
    return token_of(module, values), module.State(**draw_state(module, values))


def copied(state: Any) -> Any:
    return type(state)(*(x.clone() for x in state))


def close(found: tuple[Tensor, Any], expected: tuple[Tensor, Any]) -> None:
    torch.testing.assert_close((found[0], *found[1]), (expected[0], *expected[1]), rtol=1e-5, atol=1e-6)


@pytest.mark.interpreter
@pytest.mark.parametrize("name", CARRYING)
def test_the_kernel_steps_as_torch_does(name: str) -> None:
    module = emitted(name)
    token, state = tokens(module)
    before = copied(state)
    close(module.step(**token, state=state, backend="triton"), module.step(**token, state=state))
    assert all(map(torch.equal, state, before))
    close(module.step(**token, backend="triton"), module.step(**token))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", CARRYING)
def test_a_state_is_overwritten(name: str, backend: str) -> None:
    """Also one that several tiles of channels share."""
    module = emitted(name)
    token, state = tokens(module, V=40)
    expected = module.step(**token, state=copied(state))
    o, after = module.step(**token, state=state, in_place=True, backend=backend)
    assert all(x is y for x, y in zip(after, state, strict=True))
    close((o, state), expected)
    _, after = module.step(**token, state=after, backend=backend)
    module.step(**token, state=after, in_place=True, backend=backend)  # what a step returns another one can overwrite


@pytest.mark.parametrize("backend", BACKENDS)
def test_autograd_sees_that_a_state_was_overwritten(backend: str) -> None:
    module = emitted("simple_gla")
    values = draw(module, B=2, T=3, H=2, K=6, V=5)
    state = module.State(**draw_state(module, values))
    o, _ = module.chunk(**{**values, "q": values["q"].requires_grad_()}, initial_state=state)
    with torch.no_grad():
        module.step(**token_of(module, values), state=state, in_place=True, backend=backend)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        o.sum().backward()


@pytest.mark.interpreter
def test_a_forward_derivative_is_refused_by_the_kernel() -> None:
    module = emitted("simple_gla")
    token, state = tokens(module)
    with pytest.raises(RuntimeError, match="forward-mode derivatives need mode='naive'"):
        torch.func.jvp(
            lambda q: module.step(**{**token, "q": q}, state=state, backend="triton")[0],
            (token["q"],),
            (torch.ones_like(token["q"]),),
        )


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_step_has_a_scale(backend: str) -> None:
    module = emitted("simple_gla")
    token, state = tokens(module)
    o, _ = module.step(**token, state=state, backend=backend)
    twice, _ = module.step(**token, state=state, scale=2 * 6**-0.5, backend=backend)
    torch.testing.assert_close(twice, 2 * o)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", CARRYING)
def test_a_pool_of_states(name: str, backend: str) -> None:
    module = emitted(name)
    token, _ = tokens(module, B=4)
    _, pool = tokens(module, B=5)
    before = copied(pool)
    slots = torch.tensor(SLOTS, dtype=torch.int32 if backend == "torch" else torch.int64)
    rows = slots.clamp(min=0)
    expected, after = module.step(**token, state=type(pool)(*(x[rows] for x in before)))
    strided = torch.stack([slots, slots.flip(0)], 1)[:, 0]
    o, found = module.step(**token, state=pool, slots=strided, backend=backend)
    assert all(x is y for x, y in zip(found, pool, strict=True))
    assert not o[[0, 2]].any()
    for k in (1, 3):
        close((o[k], [x[SLOTS[k]] for x in pool]), (expected[k], [x[k] for x in after]))
    for n in {0, 1, 2, 3, 4} - set(SLOTS):
        assert all(torch.equal(x[n], y[n]) for x, y in zip(pool, before, strict=True))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_pool_that_no_sequence_uses(backend: str) -> None:
    module = emitted("mlstm")
    token, _ = tokens(module, B=3)
    _, pool = tokens(module, B=2)
    before = copied(pool)
    o, _ = module.step(**token, state=pool, slots=torch.tensor([-1, -1, -1]), backend=backend)
    assert not o.any() and all(map(torch.equal, pool, before))


@pytest.mark.interpreter
@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_steps_in_place_are_the_sequence(name: str) -> None:
    module = emitted(name)
    values = draw(module, B=2, T=9, H=2, K=6, V=5)
    state = module.State(**draw_state(module, values))
    o_expected, expected = module.naive(**values, initial_state=copied(state), output_final_state=True)
    outputs = [
        module.step(**token_of(module, values, t), state=state, in_place=True, backend="triton")[0] for t in range(9)
    ]
    close((torch.stack(outputs, 1), state), (o_expected, expected))


@pytest.mark.interpreter
@pytest.mark.parametrize("name", ["simple_gla", "linear_attention", "mamba"])
def test_a_step_is_one_launch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = emitted(name)
    token, state = tokens(module)
    launched, launch = [], GridExecutor.__call__
    monkeypatch.setattr(GridExecutor, "__call__", lambda run, *a, **k: launched.append(run) or launch(run, *a, **k))
    module.step(**token, state=state, in_place=True, backend="triton")
    assert len(launched) == 1


@pytest.mark.interpreter
@pytest.mark.parametrize("name", ["simple_gla", "mlstm", "retnet_rotary"])
def test_the_kernel_has_gradients_too(name: str) -> None:
    module = emitted(name)
    values = draw(module, B=2, T=1, H=2, K=6, V=4)
    state = draw_state(module, values)
    expected = truth(module, values, state)

    class Steps:
        """The module with its step as a form over sequences of one token."""

        STATE, State, INPUTS = module.STATE, module.State, module.INPUTS

        @staticmethod
        def recurrent(*, initial_state: Any, **options: Any) -> tuple[Tensor, Any]:
            token = token_of(module, {n: x for n, x in options.items() if n in values})
            o, after = module.step(**token, state=initial_state, backend="triton")
            return o[:, None], after

    assert_matches(run(Steps, RECURRENT_TRITON, values, state), expected)


@pytest.mark.interpreter
@pytest.mark.parametrize("name", ["simple_gla", "mlstm", "rwkv4"])
def test_the_operator_of_a_step_is_registered_right(name: str) -> None:
    """Its schema says what it writes."""
    module = emitted(name)
    seen = []
    original = module.OPS["step"]
    module.OPS["step"] = lambda *arguments: seen.append(arguments) or original(*arguments)
    try:
        token, state = tokens(module)
        module.step(**token, state=state, backend="triton")
        module.step(**token, state=state, backend="triton", in_place=True)
    finally:
        module.OPS["step"] = original
    for arguments in seen:
        torch.library.opcheck(original, arguments, test_utils=("test_schema", "test_faketensor"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"in_place": 1}, "in_place: expected True or False, got 1"),
        ({"in_place": True, "state": None}, "in_place: there is no state to overwrite; pass one as `state`"),
        ({"slots": torch.tensor([0, 1]), "state": None}, "slots: there is no state for them; pass the pool as `state`"),
        ({"slots": [0, 1]}, "slots: expected an int32 or int64 tensor, got list"),
        ({"slots": torch.tensor([0.0, 1.0])}, "slots: expected an int32 or int64 tensor, got torch.float32"),
        ({"slots": torch.tensor([0])}, "slots: expected shape [2] on cpu, got [1] on cpu"),
        ({"slots": torch.tensor([0, 2])}, "slots: expected different ones below 2, the size of the pool, got [0, 2]"),
        ({"slots": torch.tensor([1, 1])}, "slots: expected different ones below 2, the size of the pool, got [1, 1]"),
        (
            {"slots": torch.tensor([-1, -1]), "state": (torch.zeros(0, 2, 6, 5),)},
            "slots: the pool is empty; it needs at least one state",
        ),
        ({"backend": "cuda"}, "backend: expected one of 'auto', 'torch', 'triton', got 'cuda'"),
    ],
)
def test_wrong_arguments_are_named(options: dict[str, Any], message: str) -> None:
    module = emitted("simple_gla")
    token, state = tokens(module)
    with pytest.raises((ValueError, TypeError)) as error:
        module.step(**token, **{"state": state, **options})
    assert str(error.value) == message


def test_what_cannot_be_overwritten_is_refused() -> None:
    module = emitted("simple_gla")
    token, state = tokens(module)
    strided = module.State(torch.zeros(2, 2, 5, 6).mT)
    for wrong, reason in ((module.State(state.S.double()), "got torch.float64"), (strided, "that is not contiguous")):
        with pytest.raises(ValueError, match=f"state.S: in place it must be contiguous and torch.float32, .*{reason}"):
            module.step(**token, state=wrong, in_place=True)
    with pytest.raises(ValueError, match="in_place: gradients cannot flow"):
        module.step(**{**token, "q": token["q"].requires_grad_()}, state=state, in_place=True)
