"""The chunkwise form in torch goes segment by segment of time, so that what it allocates at a time is little."""

from __future__ import annotations

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from tests.generated.catalogue import CHUNK, REPRESENTATIVES, emitted
from tests.generated.inputs import Values, draw_state, weak
from tests.generated.support import assert_matches, run, truth


@pytest.mark.parametrize("name", [n for n in REPRESENTATIVES if hasattr(emitted(n), "NUMBERS")])
def test_segments_of_time_are_the_sequence(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One per chunk, the last of which is ragged."""
    module = emitted(name)
    monkeypatch.setattr(module, "NUMBERS", 1)
    values = weak(module, B=2, T=40, H=2)
    state = draw_state(module, values)
    assert len(module._segments(40, 16, torch.zeros(2, 2, 16, 8))) == 3
    assert_matches(run(module, CHUNK, values, state, chunk_size=16), truth(module, values, state))


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
