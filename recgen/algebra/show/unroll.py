"""The recurrence unrolled over a few tokens: what each state and each output is made of, and the mask that appears.

Nothing is assumed about the decay: the one-step update is applied token after token to symbols of each token, and the
weights are read off the result. The general law is then stated, and refused if the unrolled rows do not follow it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sympy

from ..recurrence import Recurrence, StateRule, affine
from ..stabiliser import TRACKS
from ..widths import POSITION

TOKENS = 4


@dataclass(frozen=True)
class Unrolled:
    """A state after each of `tokens` tokens, from symbols of every token.

    mask[t][i]: the weight of token i's write in the state after token t, both from 0 here and from 1 in `numbered`.
    carried[t]: the weight of the initial state. numbered: symbol → (name, token from 1).
    """

    rule: StateRule
    mask: tuple[tuple[sympy.Expr, ...], ...]
    carried: tuple[sympy.Expr, ...]
    numbered: Mapping[sympy.Symbol, tuple[str, int]]


def gated(rec: Recurrence, name: str) -> bool:
    """Whether a quantity differs from token to token."""
    symbols = rec.quantities[name].expr.free_symbols
    moving = any("T" in rec.tensors[s.name].axes for s in symbols if s.name in rec.tensors)
    return moving or bool(symbols & {POSITION, *TRACKS})


def unroll(rec: Recurrence, rule: StateRule, tokens: int = TOKENS) -> Unrolled:
    """Apply the update `tokens` times and read off the weights.

    Raises ValueError when the weights are not the exponential of the log-decays between the two tokens.
    """
    numbered: dict[sympy.Symbol, tuple[str, int]] = {}
    at: list[dict[sympy.Symbol, sympy.Symbol]] = []
    for token in range(1, tokens + 1):
        here = {}
        for q in rec.quantities.values():
            if q.symbol in rule.update.free_symbols and gated(rec, q.name):
                here[q.symbol] = sympy.Symbol(f"{q.name}_{token}", real=True)
                numbered[here[q.symbol]] = (q.name, token)
        at.append(here)
    step = affine(rule)
    state: sympy.Expr = rule.symbol
    mask, carried = [], []
    for here in at:
        state = sympy.expand_mul(rule.update.xreplace({**here, rule.symbol: state}))
        carried.append(sympy.powsimp(state.coeff(rule.symbol)))
        mask.append(tuple(_coefficient(state, [w.xreplace(then) for w in step.write]) for then in at))
    found = Unrolled(rule, tuple(mask), tuple(carried), numbered)
    _check(found, [step.log_decay.xreplace(here) for here in at])
    return found


def _coefficient(expr: sympy.Expr, factors: list[sympy.Expr]) -> sympy.Expr:
    """What multiplies the product of the factors, each of which occurs linearly."""
    for f in factors:
        expr = sympy.diff(expr, f) if f.is_Symbol else expr
    return sympy.powsimp(expr)


def _check(found: Unrolled, log_decay: list[sympy.Expr]) -> None:
    """Row t weighs token i by the exponential of the log-decays after i through t, and later tokens by 0."""
    for t, (row, carried) in enumerate(zip(found.mask, found.carried, strict=True)):
        between = [sympy.exp(sympy.Add(*log_decay[i + 1 : t + 1])) if i <= t else 0 for i in range(len(row))]
        through = sympy.exp(sympy.Add(*log_decay[: t + 1]))
        if any(sympy.simplify(a - b) != 0 for a, b in zip((*row, carried), (*between, through), strict=True)):
            raise ValueError(f"row {t + 1} of the unrolled {found.rule.name} is {row}, not the decays between tokens")
