"""Where an expression has no value: on whole regions of its inputs, or at some sizes and indices.

A part into which nothing but sizes and indices enters, such as 1 / (K - 4), is doubtful when interval analysis leaves
room for a pole, the logarithm or root of what is not positive, or a number beyond float32. One that fails at an index
whatever the sizes are is refused where it is written; one that fails at some sizes is checked at the call.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import mpmath
import numpy as np
import sympy

from recgen.algebra import precise
from recgen.algebra.bounds import bounds
from recgen.algebra.interval import Interval
from recgen.algebra.smooth import points
from recgen.algebra.wide_values import vector_value
from recgen.algebra.widths import Widths

LARGEST = 3e38  # of float32, nearly
WIDEST = 65536.0  # sizes and indices up to here are told apart from those that overflow
MOST_HEADS = 100.0  # and indices of heads up to here
TRIED = (1, 2, 3, 4, 5, 7, 16, 64, 100)  # sizes
INDICES = range(8)
OVER = {"h": "H", "k": "KD", "i": "K"}  # index → the sizes that it stays below

EXTENT = {"K": 3, "V": 2, "M": 4}  # widths at which maps are tried

Point = Mapping[sympy.Symbol, int]


def without_value(tree: sympy.Expr) -> str:
    """Where the inputs are that leave an expression infinite, not at a point but on a region; or nothing."""
    variables = sorted((s for s in tree.free_symbols if s.is_integer is None), key=str)
    sizes = proper_sizes([tree])
    first = dict.fromkeys((s for s in tree.free_symbols if s.name in OVER and s.is_integer), 0)
    flips = [(), variables, *([s] for s in variables if variables[1:])]
    for at, _ in list(points(tree, variables))[1:] if variables else ():
        for negative, start in itertools.product(flips, ({}, first) if first else ({},)):
            here = {**at, **sizes, **start, **{s: -at[s] for s in negative}}
            if not _has_value(partial(precise.value, tree, here)):
                return ", ".join(f"{s} = {float(here[s].real):.3g}" for s in variables)
    return ""


def map_without_value(tree: sympy.Expr, argument: sympy.Symbol, widths: Widths) -> str:
    """The same of a map of whole vectors: which vectors it has no value for."""
    sizes = {s: 2 for s in tree.free_symbols if s.is_integer} | proper_sizes([tree])
    symbols = sorted((s for s in tree.free_symbols if s.is_integer is None), key=str)
    shapes = {s: [EXTENT[w.name] for w in widths.get(s, ())] for s in symbols}
    for seed, (sign, what) in itertools.product(range(3), ((1, "positive"), (-1, "negative"), (0, "mixed"))):
        draw = random.Random(seed)
        at = {s: _drawn(draw, shapes[s], sign if s == argument else 0) for s in symbols} | sizes
        if not _has_value(partial(vector_value, tree, at)):
            return f"the elements of {argument} are {what}"
    return ""


def _drawn(draw: random.Random, shape: list[int], sign: int) -> Any:
    numbers = [mpmath.mpf((sign or draw.choice((-1, 1))) * draw.uniform(0.2, 2)) for _ in range(math.prod(shape))]
    return np.array(numbers, dtype=object).reshape(shape) if shape else numbers[0]


def _has_value(evaluate: Callable[[], Any]) -> bool:
    """Whether there is a finite value; a condition on what is not real has none, and is judged elsewhere."""
    try:
        return all(mpmath.isfinite(x) for x in np.ravel(evaluate()))
    except ArithmeticError:
        return False
    except TypeError:
        return True


def doubtful(tree: sympy.Basic) -> list[sympy.Expr]:
    """The largest parts of an expression that are made of sizes and indices, and may have no finite real value."""
    whole = bool(tree.free_symbols) and all(s.is_integer for s in tree.free_symbols)
    if whole and isinstance(tree, sympy.Expr) and not tree.is_Symbol and _may_fail(tree):
        return [tree]
    found = dict.fromkeys(part for arg in tree.args for part in doubtful(arg))
    return list(found)


def _may_fail(tree: sympy.Expr) -> bool:
    ranges = {
        s: Interval(1.0 if s.is_positive else 0.0, MOST_HEADS if s.name == "h" else WIDEST) for s in tree.free_symbols
    }
    try:
        poles = any(_has_pole(node, ranges) for node in sympy.preorder_traversal(tree) if node.free_symbols)
        found = bounds(tree, ranges)
    except (ValueError, ArithmeticError, TypeError, NotImplementedError):
        return True
    return poles or not (-LARGEST < found.lo and found.hi < LARGEST)


def _has_pole(node: sympy.Basic, ranges: Mapping[sympy.Symbol, Interval]) -> bool:
    if isinstance(node, sympy.log):
        return bounds(node.args[0], ranges).lo <= 0
    if not isinstance(node, sympy.Pow) or node.exp.is_nonnegative and node.exp.is_integer:
        return False
    base = bounds(node.base, ranges)
    if node.exp.is_integer:
        return base.lo <= 0 <= base.hi
    return base.lo < 0 or base.lo == 0 and not node.exp.is_nonnegative


def fails_everywhere(tree: sympy.Basic) -> str:
    """Which part of an expression has no value at which index, whatever the sizes are; or nothing."""
    for part in doubtful(tree):
        indices = sorted((s for s in part.free_symbols if s.name in OVER), key=str)
        for values in itertools.product(INDICES, repeat=len(indices)):
            at = dict(zip(indices, values, strict=True))
            tried = [sizes for sizes in _sizes(part) if _exists(at, sizes)]
            if tried and not any(_finite(part, {**at, **sizes}) for sizes in tried):
                where = " and ".join(f"{s} = {n}" for s, n in at.items())
                return f"{part} has no finite value {f'at {where}' if where else 'at any size'}"
    return ""


def proper_sizes(trees: Iterable[sympy.Basic]) -> dict[sympy.Symbol, int]:
    """Sizes at which every doubtful part has a value for the first indices; none where nothing is doubtful."""
    parts = [part for tree in trees for part in doubtful(tree)]
    symbols = sympy.Tuple(*parts)
    for sizes in _sizes(symbols) if parts else ():
        indices = sorted((s for s in symbols.free_symbols if s.name in OVER), key=str)
        every = itertools.product(range(3), repeat=len(indices))
        if all(_finite(part, {**sizes, **dict(zip(indices, at, strict=True))}) for at in every for part in parts):
            return sizes
    return {}


def _sizes(tree: sympy.Basic) -> Iterator[dict[sympy.Symbol, int]]:
    symbols = sorted((s for s in tree.free_symbols if s.name not in OVER), key=str)
    for n in TRIED:
        yield {s: n + 3 * k for k, s in enumerate(symbols)}
        yield {s: n + 3 * k for k, s in enumerate(reversed(symbols))}


def _exists(at: Point, sizes: Point) -> bool:
    """Whether there are that many heads, channels or pairs, as far as the sizes are known."""
    known = {s.name: n for s, n in sizes.items()}
    return all(n < known.get(size, n + 1) for s, n in at.items() for size in OVER[s.name])


def _finite(part: sympy.Expr, at: Point) -> bool:
    try:
        value = precise.value(part, at)
    except (ArithmeticError, TypeError, ValueError):
        return False
    return bool(mpmath.isfinite(value)) and value.imag == 0 and abs(float(value.real)) < LARGEST
