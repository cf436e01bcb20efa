"""What the torch forms allocate beside inputs, outputs and gradients: little, where those are most of what there is."""
from __future__ import annotations

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from tests.generated.catalogue import REPRESENTATIVES, emitted
from tests.generated.inputs import Values


def numbers(values: Values) -> int:
    return sum(x.numel() for x in values.values())


def peak(events: list[object]) -> int:
    """The most float32 numbers that are allocated at a time."""
    now = most = 0
    for e in sorted((e for e in events if e.name() == "[memory]"), key=lambda e: e.start_ns()):
        now += e.nbytes()
        most = max(most, now)
    return most // 4


@pytest.mark.parametrize("name", [n for n in REPRESENTATIVES if len(emitted(n).INPUTS) > 1])
def test_a_training_step_takes_twice_what_it_is_given_and_gives(name: str) -> None:
    module = emitted(name)
    leaves = {n: x.requires_grad_() for n, x in module.sample_inputs(B=1, T=4096, H=8, K=64, V=64).items()}
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        o, _ = module.operator(**leaves)
        torch.autograd.grad(o, list(leaves.values()), torch.ones_like(o))
    needed = 2 * numbers(leaves) + o.numel()
    assert peak(profiled.profiler.kineto_results.events()) + numbers(leaves) <= 2 * needed
