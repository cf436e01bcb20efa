"""Along which axes an expression varies: those of the tensors in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sympy import Expr as Expression
from sympy import Symbol

from recgen.spec.context import Context
from recgen.spec.model import AXIS_MEANING, HEAD, SIZES, Expr, Tensor
from recgen.spec.source import listing


def tensors_in(expr: Expr, tensors: Mapping[str, Tensor]) -> list[Tensor]:
    """The declared tensors that the expression depends on, in the order of their declaration."""
    names = {symbol.name for symbol in expr.tree.free_symbols}
    return [tensor for name, tensor in tensors.items() if name in names]


def axes_of(expr: Expr, tensors: Mapping[str, Tensor]) -> dict[str, list[Tensor]]:
    """Axis letter → the tensors in the expression that carry it."""
    carriers: dict[str, list[Tensor]] = {}
    for tensor in tensors_in(expr, tensors):
        for letter in tensor.axes:
            if tensor not in carriers.setdefault(letter, []):
                carriers[letter].append(tensor)
    if HEAD in expr.tree.free_symbols:
        carriers.setdefault("H", [])
    return carriers


def varies_with(expr: Expr, tensors: Iterable[Tensor]) -> list[str]:
    """What the expression differs with, in words: token, head, key channel …"""
    carriers = axes_of(expr, {tensor.name: tensor for tensor in tensors})
    words = {"T": "token", **{letter: AXIS_MEANING[letter] for letter in "HKVD"}}
    return [word for letter, word in words.items() if letter in carriers]


def widths_of(tensors: Mapping[str, Tensor]) -> dict[Symbol, tuple[Expression, ...]]:
    """The sizes that each tensor has inside a head, by its symbol."""
    return {t.symbol: tuple(SIZES[a] for a in t.axes if a in SIZES and a != "H") for t in tensors.values()}


def check_axes(
    context: Context,
    path: tuple[str, ...],
    expr: Expr,
    tensors: Mapping[str, Tensor],
    allowed: str,
    what: str,
    fix: str,
    needed: str = "",
) -> bool:
    """Whether the expression varies along allowed axes only, and along every needed one; says so where it does not.

    allowed, needed: axis letters. what: the start of the reason, e.g. "the decay is declared per: head".
    """
    carriers = axes_of(expr, tensors)
    wrong = [letter for letter in carriers if letter not in allowed]
    if wrong:
        letter = wrong[0]
        context.refuse_at(path, f"{what}, but {_varies(letter, carriers[letter])}", fix)
        return False
    missing = [letter for letter in needed if letter not in carriers]
    if missing:
        context.refuse_at(path, f"{what}, but nothing in it varies by {AXIS_MEANING[missing[0]]}", fix)
        return False
    repeated = [tensor for tensor in tensors_in(expr, tensors) if len(set(tensor.axes)) < len(tensor.axes)]
    for tensor in repeated:
        reason = f"{tensor.name} has the axes {tensor.layout}, and an expression acts element by element"
        context.refuse_at(path, reason, f"give {tensor.name} each axis once")
    return not repeated


def _varies(letter: str, carriers: Iterable[Tensor]) -> str:
    """`it varies by key channel: g has the axes B T H K`."""
    shown = listing((f"{tensor.name} has the axes {tensor.layout}" for tensor in carriers), "and")
    return f"it varies by {AXIS_MEANING[letter]}" + (f": {shown}" if shown else " (h is the head index)")
