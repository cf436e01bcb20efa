"""Intervals of real numbers, and what functions do to them.

Every result encloses the truth, apart from float rounding; endpoints that are exact numbers (0, 1, -0.1) come out
exact. Infinite ends are limits that are not attained, so 0 times an infinite end is 0.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """The numbers from lo to hi, lo <= hi; an end may be infinite."""

    lo: float
    hi: float

    def __post_init__(self) -> None:
        if not self.lo <= self.hi:
            raise ValueError(f"an interval needs lo <= hi, not lo={self.lo}, hi={self.hi}")
        largest = sys.float_info.max  # an end that overflowed: the interval still holds numbers
        object.__setattr__(self, "lo", min(float(self.lo), largest) + 0.0)
        object.__setattr__(self, "hi", max(float(self.hi), -largest) + 0.0)

    def __contains__(self, value: float) -> bool:
        return self.lo <= value <= self.hi

    def __str__(self) -> str:
        left = "(" if math.isinf(self.lo) else "["
        right = ")" if math.isinf(self.hi) else "]"
        return f"{left}{self.lo:g}, {self.hi:g}{right}"

    def union(self, other: Interval) -> Interval:
        """The smallest interval that holds both."""
        return Interval(min(self.lo, other.lo), max(self.hi, other.hi))

    def intersection(self, other: Interval) -> Interval | None:
        """What both hold, None where they do not meet."""
        lo, hi = max(self.lo, other.lo), min(self.hi, other.hi)
        return Interval(lo, hi) if lo <= hi else None


REAL_LINE = Interval(-math.inf, math.inf)


def rising(function: Callable[[float], float]) -> Callable[[Interval], Interval]:
    """The rule of a function that never falls; where it overflows it is infinite."""

    def end(x: float) -> float:
        try:
            return function(x)
        except OverflowError:
            return math.inf

    return lambda x: Interval(end(x.lo), end(x.hi))


def sigmoid(x: float) -> float:
    """1 / (1 + exp(-x)) of a float, infinite ones too."""
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def softplus(x: float) -> float:
    """log(1 + exp(x)) of a float, infinite ones too."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def silu(x: Interval) -> Interval:
    """x · sigmoid(x): it falls to its lowest point and rises from there."""
    lowest = -1.2784645427610738  # where 1 + x·sigmoid(-x) is 0
    ends = [0.0 if end == -math.inf else end * sigmoid(end) for end in (x.lo, x.hi)]
    inside = [lowest * sigmoid(lowest)] if lowest in x else []
    return Interval(min(ends + inside), max(ends))


def logarithm(function: Callable[[float], float], pole: float) -> Callable[[Interval], Interval]:
    """The rule of math.log or math.log1p, which is -inf at its pole and has no value below it."""

    def rule(x: Interval) -> Interval:
        if x.hi < pole:
            raise ValueError("the logarithm of a number that is negative everywhere")
        return Interval(*(function(end) if end > pole else -math.inf for end in (x.lo, x.hi)))

    return rule


def absolute(x: Interval) -> Interval:
    """abs(x)."""
    return Interval(max(x.lo, -x.hi, 0.0), max(-x.lo, x.hi))


def wave(function: Callable[[float], float], first_peak: float) -> Callable[[Interval], Interval]:
    """sin or cos: extremes every π from `first_peak` on, in turn 1 and -1."""

    def rule(x: Interval) -> Interval:
        if math.isinf(x.lo) or math.isinf(x.hi) or x.hi - x.lo >= 2 * math.pi:
            return Interval(-1.0, 1.0)
        first, last = math.ceil((x.lo - first_peak) / math.pi), math.floor((x.hi - first_peak) / math.pi)
        values = [function(x.lo), function(x.hi), *(1.0 - 2.0 * (n % 2) for n in range(first, last + 1))]
        return Interval(min(values), max(values))

    return rule


def total(*terms: Interval) -> Interval:
    """The sum."""
    lows, highs = [term.lo for term in terms], [term.hi for term in terms]
    try:
        lo, hi = math.fsum(lows), math.fsum(highs)
    except OverflowError:
        lo, hi = sum(lows), sum(highs)
    return Interval(lo, hi)


def _times(a: float, b: float) -> float:
    return 0.0 if a == 0 or b == 0 else a * b


def product(*factors: Interval) -> Interval:
    """The product."""
    result = factors[0]
    for factor in factors[1:]:
        corners = [_times(a, b) for a in (result.lo, result.hi) for b in (factor.lo, factor.hi)]
        result = Interval(min(corners), max(corners))
    return result


def remainder(a: Interval, b: Interval) -> Interval:
    """mod(a, b), with the sign of b."""
    if b.lo > 0 and a.lo >= 0 and a.hi < b.lo:
        return a
    return Interval(min(b.lo, 0.0), max(b.hi, 0.0))


def whole_power(x: Interval, n: int) -> Interval:
    """x ** n for a whole number n."""
    if n < 0:
        return reciprocal(whole_power(x, -n))
    ends = [_float_power(x.lo, n), _float_power(x.hi, n)]
    return Interval(0.0 if n % 2 == 0 and 0.0 in x else min(ends), max(ends))


def positive_power(base: Interval, power: Interval) -> Interval:
    """base ** power of a base >= 0: monotone in each of the two, so its extremes lie at the corners."""
    corners = [_float_power(b, p) for b in (base.lo, base.hi) for p in (power.lo, power.hi)]
    if 0.0 in power:
        corners.append(1.0)
    return Interval(min(corners), max(corners))


def reciprocal(x: Interval) -> Interval:
    """1 / x; the real line where x runs through 0."""
    if x.lo < 0 < x.hi or x.lo == x.hi == 0:
        return REAL_LINE
    if x.lo == 0:
        return Interval(0.0 if math.isinf(x.hi) else 1 / x.hi, math.inf)
    if x.hi == 0:
        return Interval(-math.inf, 0.0 if math.isinf(x.lo) else 1 / x.lo)
    return Interval(1 / x.hi, 1 / x.lo)


def _float_power(base: float, power: float) -> float:
    if base == 0 and power < 0:
        return math.inf
    try:
        return math.pow(base, power)
    except OverflowError:
        return -math.inf if base < 0 and power % 2 == 1 else math.inf
