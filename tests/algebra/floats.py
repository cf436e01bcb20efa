"""Ordinary numbers in the place of an exact domain: a program or a recurrence computed as a person would."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np

from recgen.algebra.exact import UNIT, Sum, log_decays


class Floats:
    """Python floats. The largest exponent that was taken is kept."""

    def __init__(self) -> None:
        self.largest = -math.inf

    def atom(self, value: mpmath.mpf, label: str = "") -> float:
        return float(value)

    def constant(self, value: Fraction) -> float:
        return float(value)

    def exp(self, exponent: Sum | int) -> float:
        total = sum(c * atom / UNIT for atom, c in log_decays(exponent))
        self.largest = max(self.largest, total)
        return math.exp(total)

    def reciprocal(self, x: float) -> float:
        return 1 / x


def close(given: np.ndarray, wanted: np.ndarray) -> bool:
    """Equal up to rounding."""
    return given.shape == wanted.shape and np.allclose(given.astype(float), wanted.astype(float), rtol=1e-9, atol=1e-9)
