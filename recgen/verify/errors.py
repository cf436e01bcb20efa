"""How far a result is from the truth, and how far it may be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from .run import GRADIENT, kind

TOLERANCES = {
    "float32": (1e-5, 5e-5),
    "float64": (1e-12, 1e-11),
    "bfloat16": (2**-8, 2**-7),
    "float16": (2**-11, 2**-10),
}
_UNDERFLOW = 1e-30


def relative_error(x: Tensor, truth: Tensor) -> float:
    """‖x − truth‖ / ‖truth‖ in float64; NaN when anything is not finite or the shapes differ.

    A truth below what float32 can tell from zero (1e-30 per entry) counts as that size, so an exact zero must be met
    to the same absolute accuracy."""
    if x.shape != truth.shape:
        return math.nan
    if truth.numel() == 0:
        return 0.0
    x, truth = x.detach().cpu().double(), truth.detach().cpu().double()
    if not bool(x.isfinite().all()):
        return math.nan
    size = max(float(torch.linalg.vector_norm(truth)), _UNDERFLOW * math.sqrt(truth.numel()))
    return float(torch.linalg.vector_norm(x - truth)) / size


def compare(found: Mapping[str, Tensor], truth: Mapping[str, Tensor]) -> dict[str, float]:
    """Relative error of every result by name; NaN for one that is missing."""
    return {name: relative_error(found[name], truth[name]) if name in found else math.nan for name in truth}


@dataclass(frozen=True)
class Measure:
    """One result's error, the largest it may have, and whether that is what the eager reference achieves.

    `eager` is false when `allowed` is the tolerance of the dtype."""

    name: str
    error: float
    allowed: float
    eager: bool = False

    @property
    def ok(self) -> bool:
        """Within what is allowed; NaN never is."""
        return self.error <= self.allowed

    @property
    def ratio(self) -> float:
        """error / allowed; infinite for NaN."""
        return math.inf if math.isnan(self.error) else self.error / self.allowed


def tolerance(dtype: str, name: str) -> float:
    """The relative error that a result of this name may always have in `dtype`."""
    outputs, gradients = TOLERANCES[dtype]
    return gradients if kind(name) == GRADIENT else outputs
