"""Interleaved times: who runs when, and what the medians and ratios say."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from recgen.bench.clock import Times, Work, interleave, quartiles, ratios


def test_contenders_take_turns_and_the_warm_up_is_not_timed() -> None:
    calls: list[str] = []
    times = interleave({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, rounds=3, warmup=2)
    assert calls == ["a", "b"] * 5
    assert [len(t.seconds) for t in times.values()] == [3, 3]
    assert all(second >= 0 for t in times.values() for second in t.seconds)


def test_a_stopwatch_is_read_after_the_last_round() -> None:
    log: list[str] = []

    def stopwatch(work: Work) -> Callable[[], float]:
        work()
        return lambda: log.append("read") or 2.0

    times = interleave({"a": lambda: log.append("a")}, rounds=2, stopwatch=stopwatch)
    assert log == ["a", "a", "a", "read", "read"]
    assert times["a"].seconds == (2.0, 2.0)


def test_no_round_is_refused() -> None:
    with pytest.raises(ValueError, match="rounds must be at least 1, got 0"):
        interleave({}, rounds=0)


def test_the_ratio_is_the_median_of_the_rounds_with_their_spread() -> None:
    slow, fast = Times((4.0, 6.0, 9.0)), Times((2.0, 2.0, 4.0))
    ratio, (low, high) = ratios(slow, fast)
    assert ratio == 2.25
    assert (low, high) == (2.0, 3.0)


def test_quartiles_are_the_middle_half() -> None:
    assert quartiles([1.0, 2.0, 3.0, 4.0, 5.0]) == (2.0, 4.0)
    assert quartiles([3.0, 1.0]) == (1.0, 3.0)
