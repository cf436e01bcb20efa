"""That the real recurrence of a complex decay is the complex one: both are run, with complex numbers of 160 digits.

The complex one comes from the spec's expressions as they are written, token by token. Nothing of their real and
imaginary parts, of the frame or of its sign enters it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import sympy

from recgen.algebra import precise
from recgen.algebra.recurrence import Recurrence
from recgen.algebra.wide_values import vector_value
from recgen.algebra.widths import POSITION, is_wide
from recgen.errors import ProofError

CHANNELS, TOKENS, BEFORE = 2, 4, 5  # key channels, tokens, and how many tokens came before them
CLAIM = "S_t = e^(iθn) (S_t[:K] + i S_t[K:]) at position n is the complex state, and o_t reads its real part"
METHOD = "both recurrences in complex numbers of 160 digits, at a random point"
SIZES = f"T = {TOKENS} after {BEFORE} tokens; {CHANNELS} key channels"


@dataclass(frozen=True)
class Point:
    """Random values of inputs and parameters; those of an input differ from token to token."""

    rec: Recurrence

    def at(self, expr: sympy.Expr, t: int) -> dict[sympy.Symbol, Any]:
        return {s: self._value(s, t) for s in expr.free_symbols}

    def _value(self, s: sympy.Symbol, t: int) -> Any:
        if s == POSITION:
            return mpmath.mpf(BEFORE + t)
        tensor = self.rec.tensors.get(s.name) if s.is_integer is None else None
        if tensor is None:
            return mpmath.mpf(random.Random(s.name).randint(1, 9))
        moving = t if tensor.role == "input" else ""
        found = [number(f"{s} {moving} {m}") for m in range(CHANNELS if "K" in tensor.axes else 1)]
        return np.array(found, dtype=object) if "K" in tensor.axes else found[0]


def number(seed: str) -> mpmath.mpf:
    return mpmath.mpf(random.Random(seed).uniform(-1, 1))


def prove_frame(rec: Recurrence) -> None:
    """Raises ProofError where outputs or states differ."""
    with mpmath.workdps(precise.DIGITS):
        _compare(rec, Point(rec))


def _compare(rec: Recurrence, point: Point) -> None:
    step = rec.complex_step
    assert step is not None
    features = np.array([number(f"S {m}") for m in range(2 * CHANNELS)], dtype=object)
    angle = np.array([_complex(step.log_decay, point, 0, m).imag for m in range(CHANNELS)], dtype=object)
    state = _unturned(features, angle, BEFORE - 1)
    for t in range(TOKENS):
        value = number(f"value {t}")
        log_decay, query, key = (
            np.array([_complex(e, point, t, m) for m in range(CHANNELS)], dtype=object)
            for e in (step.log_decay, step.query, step.key)
        )
        state = np.frompyfunc(mpmath.exp, 1, 1)(log_decay) * state + key * value
        scale = point.at(sympy.Symbol("scale", real=True), t).popitem()[1]
        read = mpmath.mpc(scale * (query * state).sum()).real
        decays, queries, keys = (_features(rec, name, point, t) for name in ("log_decay", "query", "key"))
        features = np.frompyfunc(mpmath.exp, 1, 1)(decays) * features + keys * value
        _same(f"the output at token {t + 1}", (queries * features).sum(), read)
        for m, (given, needed) in enumerate(zip(_unturned(features, angle, BEFORE + t), state, strict=True)):
            _same(f"the state of key channel {m} after token {t + 1}", given, needed)


def _unturned(features: np.ndarray, angle: np.ndarray, position: int) -> np.ndarray:
    """The complex state of real features."""
    pairs = zip(features[:CHANNELS], features[CHANNELS:], angle, strict=True)
    return np.array([mpmath.mpc(re, im) * mpmath.expj(a * position) for re, im, a in pairs], dtype=object)


def _complex(expr: sympy.Expr, point: Point, t: int, m: int) -> mpmath.mpc:
    at = {s: x[m] if np.ndim(x) else x for s, x in point.at(expr, t).items()}
    return mpmath.mpc(precise.value(expr, at))


def _features(rec: Recurrence, name: str, point: Point, t: int) -> Any:
    """A quantity of the real recurrence: one value per feature, or one for all; no decay is 0."""
    if name not in rec.quantities:
        return np.array([mpmath.mpf(0)], dtype=object)
    expr = rec.quantities[name].expr
    found = vector_value(expr, point.at(expr, t)) if is_wide(expr) else precise.value(expr, point.at(expr, t))
    return np.array(np.atleast_1d(found), dtype=object)


def _same(what: str, given: Any, needed: Any) -> None:
    if abs(given - needed) > mpmath.mpf(10) ** -100 * (1 + abs(needed)):
        shown = [mpmath.nstr(x, 15) for x in (given, needed)]
        raise ProofError(f"{what} differs\n  real recurrence:    {shown[0]}\n  complex recurrence: {shown[1]}")
