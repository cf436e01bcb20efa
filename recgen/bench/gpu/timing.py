"""Seconds and bytes on a GPU; and a stand-in where there is none, which does the work and measures nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import torch

from recgen.bench.clock import Times, Work, interleave

LEAST_ROUNDS, MOST_ROUNDS = 5, 30
FLUSHED = 256 * 2**20  # bytes: more than any L2 cache holds

Figure = dict[str, Any]


class Meter(Protocol):
    """What measures a run."""

    device: str

    def times(self, contenders: Mapping[str, Work], seconds: float) -> dict[str, Figure]:
        """The contenders in turn, round after round, for about so many seconds."""

    def peak(self, work: Work) -> int | None:
        """The most bytes allocated at once during the work, on top of what was allocated before it."""


class Gpu:
    """CUDA events around each piece of work, with the L2 cache overwritten before it.

    Nothing waits for the device between two rounds, so that launching is timed only where it takes longer than the
    work itself.
    """

    device = "cuda"

    def __init__(self) -> None:
        self._flushed = torch.empty(FLUSHED, dtype=torch.int8, device=self.device)

    def times(self, contenders: Mapping[str, Work], seconds: float) -> dict[str, Figure]:
        first = interleave(contenders, rounds=1, warmup=2, stopwatch=self.stopwatch)
        torch.cuda.synchronize()
        rounds = rounds_within(seconds, sum(times.median for times in first.values()))
        return {
            name: figure(times)
            for name, times in interleave(contenders, rounds, warmup=0, stopwatch=self.stopwatch).items()
        }

    def peak(self, work: Work) -> int | None:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        work()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before

    def stopwatch(self, work: Work) -> Callable[[], float]:
        """Does the work; what is returned waits for the device and tells the seconds."""
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self._flushed.zero_()
        start.record()
        work()
        end.record()

        def read() -> float:
            end.synchronize()
            milliseconds: float = start.elapsed_time(end)
            return milliseconds / 1e3

        return read


class StandIn:
    """Does every piece of work once. What it would measure is None, never a number."""

    device = "cpu"

    def times(self, contenders: Mapping[str, Work], seconds: float) -> dict[str, Figure]:
        for work in contenders.values():
            work()
        return {name: figure(None) for name in contenders}

    def peak(self, work: Work) -> int | None:
        work()
        return None


def rounds_within(seconds: float, one_round: float) -> int:
    """How many rounds fit, but no fewer than make a spread and no more than are of use."""
    return max(LEAST_ROUNDS, min(MOST_ROUNDS, int(seconds / max(one_round, 1e-9))))


def figure(times: Times | None) -> Figure:
    """A median with its quartiles and every round, in seconds; all None where nothing was measured."""
    if times is None:
        return {"median": None, "low": None, "high": None, "rounds": None}
    low, high = times.quartiles
    return {"median": times.median, "low": low, "high": high, "rounds": list(times.seconds)}
