"""Times that can be compared: every contender once per round, in turn, so that a busy moment hits all of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Work = Callable[[], Any]

Stopwatch = Callable[[Work], Callable[[], float]]
"""Does a piece of work, and returns what tells its seconds: a GPU knows them only after the last round."""


@dataclass(frozen=True)
class Times:
    """Seconds of one contender, one per round."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def quartiles(self) -> tuple[float, float]:
        """The middle half lies between these two; with fewer than four rounds, the fastest and the slowest."""
        return quartiles(self.seconds)


def wall(work: Work) -> Callable[[], float]:
    """The stopwatch of the machine's own clock."""
    start = time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    return lambda: seconds


def interleave(
    contenders: Mapping[str, Work], rounds: int, warmup: int = 1, stopwatch: Stopwatch = wall
) -> dict[str, Times]:
    """Time each contender once per round after `warmup` untimed rounds. Raises ValueError for fewer than one round."""
    if rounds < 1:
        raise ValueError(f"rounds must be at least 1, got {rounds}")
    readings: dict[str, list[Callable[[], float]]] = {name: [] for name in contenders}
    for turn in range(warmup + rounds):
        for name, work in contenders.items():
            reading = stopwatch(work)
            if turn >= warmup:
                readings[name].append(reading)
    return {name: Times(tuple(read() for read in taken)) for name, taken in readings.items()}


def ratios(numerator: Times, denominator: Times) -> tuple[float, tuple[float, float]]:
    """The median and the quartiles of the ratios round by round."""
    each = [a / b for a, b in zip(numerator.seconds, denominator.seconds, strict=True)]
    return statistics.median(each), quartiles(each)


def quartiles(values: tuple[float, ...] | list[float]) -> tuple[float, float]:
    """First and third quartile; the extremes of fewer than four values."""
    if len(values) < 4:
        return min(values), max(values)
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high
