"""What the tests of torch.compile, export and checkpointing share: a training step, and small inputs for it."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import torch
from torch import Tensor

from tests.generated.inputs import Values, draw, draw_state
from tests.generated.support import leaves_of

Step = Callable[..., list[Tensor]]


def small(module: ModuleType, *, T: int = 20, B: int = 2, N: int | None = None, seed: int = 0) -> tuple[Values, Values]:
    """Inputs and parameters that need gradients, and a state to start from."""
    values = draw(module, B=B, T=T, H=2, K=4, V=3, seed=seed)
    return leaves_of(values), leaves_of(draw_state(module, values, N=N))


def forward_of(module: ModuleType) -> Step:
    """The operator from a state and to one, as one function of tensors: what is compiled."""

    def forward(values: Values, state: Values, **options: object) -> list[Tensor]:
        if not module.STATE:
            return [module.operator(**values, **options)[0]]
        o, end = module.operator(**values, initial_state=module.State(**state), output_final_state=True, **options)
        return [o, *end]

    return forward


def training_step(forward: Step, values: Values, state: Values, **options: object) -> list[Tensor]:
    """Outputs, and gradients through all of them."""
    outputs = forward(values, state, **options)
    loss = sum((x.sin() * (1 + k)).sum() for k, x in enumerate(outputs) if x.requires_grad)
    leaves = [x for x in (*values.values(), *state.values()) if x.requires_grad]
    found = torch.autograd.grad(loss, leaves, allow_unused=True)
    return [x.detach() for x in (*outputs, *(x for x in found if x is not None))]


def assert_equal(found: list[Tensor], expected: list[Tensor], note: object = "") -> None:
    """To the bit: what is compiled are calls of the same operators."""
    assert len(found) == len(expected)
    wrong = [k for k, (x, y) in enumerate(zip(found, expected, strict=True)) if not torch.equal(x, y)]
    assert not wrong, f"{note}: results {wrong} differ"
