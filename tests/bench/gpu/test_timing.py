"""How things are timed: on a stand-in for the GPU's clock, and on none."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from recgen.bench.clock import Times
from recgen.bench.gpu import timing
from recgen.bench.gpu.timing import Gpu, StandIn, figure, rounds_within

EMPTY = {"median": None, "low": None, "high": None, "rounds": None}


class Event:
    """An event of a device on which each piece of work takes its own number of milliseconds."""

    log: list[str] = []
    now = 0.0

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing

    def record(self) -> None:
        Event.log.append("event")
        self.at = Event.now

    def synchronize(self) -> None:
        Event.log.append("wait")

    def elapsed_time(self, end: Event) -> float:
        return end.at - self.at


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    monkeypatch.setattr(Gpu, "device", "cpu")
    monkeypatch.setattr(timing, "FLUSHED", 8)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(Event, "log", [])
    monkeypatch.setattr(Event, "now", 0.0)
    gpu = Gpu()
    monkeypatch.setattr(gpu, "_flushed", Flushed())
    return gpu


class Flushed:
    def zero_(self) -> None:
        Event.log.append("flush")
        Event.now += 1000


def takes(name: str, milliseconds: float) -> Callable[[], None]:
    def work() -> None:
        Event.log.append(name)
        Event.now += milliseconds

    return work


def test_contenders_take_turns_the_cache_is_overwritten_first_and_nothing_waits_between(device: Gpu) -> None:
    found = device.times({"a": takes("a", 2.0), "b": takes("b", 4.0)}, seconds=0.05)
    assert found["a"] == {"median": 0.002, "low": 0.002, "high": 0.002, "rounds": [0.002] * 8}
    assert found["b"]["median"] == 0.004, "what the overwriting takes is not in it"
    rounds = Event.log[-8 * 2 * 5 :]
    one = ["flush", "event", "a", "event", "flush", "event", "b", "event"]
    assert rounds[: 8 * 8] == one * 8
    assert rounds[8 * 8 :] == ["wait"] * 16, "the device is asked only after the last round"


def test_there_are_enough_rounds_for_a_spread_and_not_too_many() -> None:
    assert rounds_within(0.7, 10.0) == timing.LEAST_ROUNDS
    assert rounds_within(1.0, 0.125) == 8
    assert rounds_within(0.7, 1e-6) == timing.MOST_ROUNDS


def test_without_a_gpu_the_work_is_done_and_no_number_comes_of_it() -> None:
    done: list[str] = []
    meter = StandIn()
    assert meter.times({"a": lambda: done.append("a"), "b": lambda: done.append("b")}, 1.0) == {"a": EMPTY, "b": EMPTY}
    assert meter.peak(lambda: done.append("c")) is None
    assert done == ["a", "b", "c"]


def test_a_figure_has_its_spread() -> None:
    assert figure(Times((3.0, 1.0, 2.0))) == {"median": 2.0, "low": 1.0, "high": 3.0, "rounds": [3.0, 1.0, 2.0]}
    assert figure(None) == EMPTY
