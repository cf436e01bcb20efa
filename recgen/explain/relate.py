"""How two recurrences are related: the same one under other names, or one with some of its inputs set."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import mpmath
import sympy

from recgen.algebra.activations import LogSigmoid, SafeExp, Sigmoid, Softplus
from recgen.algebra.precise import point, value
from recgen.algebra.recurrence import Quantity, Recurrence
from recgen.spec.model import HEAD, Tensor

TRIES = 1000  # renamings that are tried at most
INFINITE = (sympy.oo, -sympy.oo)
POINTS, CLOSE = 8, mpmath.mpf(10) ** -40
ABSENT = "is not there"


@dataclass(frozen=True)
class Setting:
    """What a tensor of one spec has to be. value: in tensors of the other; ±oo where it is only approached."""

    tensor: Tensor
    value: sympy.Expr
    quantity: str


@dataclass(frozen=True)
class Obstacle:
    """Why no input of the one spec makes it the other."""

    quantity: str
    reason: str


def renaming(a: Recurrence, b: Recurrence) -> Mapping[str, str] | None:
    """Names of the first recurrence's tensors in the second, if these are all that differs; else None.

    None also where the renaming is not among the first that are tried.
    """
    kinds = [Counter(map(_kind, rec.tensors.values())) for rec in (a, b)]
    if not _same_frame(a, b, {}) or set(a.quantities) != set(b.quantities) or kinds[0] != kinds[1]:
        return None
    found = next(_renamings(_by_size(a), a, b, {}, iter(range(TRIES))), None)
    return None if found is None else {name: found[name] for name in a.tensors}


def _renamings(
    left: Sequence[Quantity], a: Recurrence, b: Recurrence, known: dict[str, str], tries: Iterator[int]
) -> Iterator[dict[str, str]]:
    """Renamings that extend what is known, quantity by quantity: a wrong one is given up at the first that differs."""
    exprs = [(q.expr, b.quantities[q.name].expr) for q in left[:1]]  # none: what is in no quantity remains
    ours = [t for t in _tensors(a, *(x for x, _ in exprs)) if t.name not in known]
    theirs = [t for t in _tensors(b, *(y for _, y in exprs)) if t.name not in known.values()]
    if len(ours) != len(theirs):
        return
    for _, found in zip(tries, _assignments(ours, theirs), strict=False):
        now = known | {t.name: found[t.name].name for t in ours}
        symbols = {a.tensors[x].symbol: b.tensors[y].symbol for x, y in now.items()}
        if all(equal(x.xreplace(symbols), y) for x, y in exprs):
            yield from _renamings(left[1:], a, b, now, tries) if left else [now]


def _assignments(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> Iterator[dict[str, Tensor]]:
    """For each of our tensors another one of theirs, of the same role and axes; first those that keep their names."""
    if not Counter(map(_kind, ours)) <= Counter(map(_kind, theirs)):
        return
    if not ours:
        yield {}
        return
    first, *rest = ours
    for t in sorted((t for t in theirs if _kind(t) == _kind(first)), key=lambda t: t.name != first.name):
        for found in _assignments(rest, [other for other in theirs if other is not t]):
            yield {first.name: t, **found}


def _kind(t: Tensor) -> tuple[str, tuple[str, ...]]:
    return t.role, t.axes


def _tensors(rec: Recurrence, *exprs: sympy.Expr) -> list[Tensor]:
    """The tensors of an expression; without one, all."""
    return [t for t in rec.tensors.values() if all(t.symbol in e.free_symbols for e in exprs)]


def _by_size(rec: Recurrence) -> list[Quantity]:
    """The quantities, those of few tensors first: they leave least to be tried."""
    return sorted(rec.quantities.values(), key=lambda q: len(_tensors(rec, q.expr)))


def equal(x: sympy.Expr, y: sympy.Expr) -> bool:
    """Whether two expressions are the same, as they stand or in their values at some points to 40 decimals."""
    if x == y:
        return True
    try:
        return all(_near(value(x, at), value(y, at)) for at in _points(x.free_symbols | y.free_symbols))
    except (NotImplementedError, ValueError, ZeroDivisionError, TypeError):
        return False


def _near(x: mpmath.mpf, y: mpmath.mpf) -> bool:
    return bool(mpmath.isfinite(x)) and abs(x - y) <= CLOSE * max(1, abs(y))


def _points(symbols: set[sympy.Symbol]) -> Iterator[Mapping[sympy.Symbol, mpmath.mpf]]:
    return (point(symbols, 1.0 + seed, seed) for seed in range(POINTS))


def _same_frame(a: Recurrence, b: Recurrence, absent: Mapping[sympy.Symbol, sympy.Expr]) -> bool:
    """Whether states, reads and output are the same expressions, with some quantities of the first set."""

    def frame(rec: Recurrence, given: Mapping[sympy.Symbol, sympy.Expr]) -> list[object]:
        rules = [
            (r.symbol, r.axes, r.before, r.update.xreplace(given), r.read.xreplace(given), r.own.xreplace(given))
            for r in rec.states
        ]
        return [rec.causal, rec.stabiliser is None, rec.output.xreplace(given), *rules]

    return frame(a, absent) == frame(b, {})


def settings(a: Recurrence, b: Recurrence) -> list[Setting] | Obstacle:
    """What inputs and parameters of `a` have to be so that it computes what `b` computes; or why none do.

    One that only keeps its name is not listed.
    """
    missing = [n for n in b.quantities if n not in a.quantities]
    if missing:
        return Obstacle(missing[0], ABSENT)
    extra = [q for n, q in a.quantities.items() if n not in b.quantities]
    neutral = next((given for given in _neutral(extra) if _same_frame(a, b, given)), None)
    if neutral is None:
        return Obstacle("", "the updates, reads or outputs of the two are different expressions")
    targets = {n: q.expr for n, q in b.quantities.items()} | {q.name: neutral[q.symbol] for q in extra}
    return _Search(a, b, targets).found()


def _neutral(extra: Sequence[Quantity]) -> Iterator[dict[sympy.Symbol, sympy.Expr]]:
    """Values at which quantities that one spec lacks may have no effect."""
    for values in product((sympy.S.Zero, sympy.S.One), repeat=len(extra)):
        yield {q.symbol: x for q, x in zip(extra, values, strict=True)}


class _Search:
    """What each tensor of `a` has to be. Those of `b` have symbols of their own here: the two may share names."""

    def __init__(self, a: Recurrence, b: Recurrence, targets: Mapping[str, sympy.Expr]) -> None:
        self.a, self.b = a, b
        self.theirs = {sympy.Dummy(t.name, real=True): t for t in b.tensors.values()}
        private = {t.symbol: symbol for symbol, t in self.theirs.items()}
        self.targets = {name: expr.xreplace(private) for name, expr in targets.items()}
        self.values: dict[sympy.Symbol, sympy.Expr] = {}
        self.of: dict[sympy.Symbol, str] = {}
        self.tries = iter(range(TRIES))

    def found(self) -> list[Setting] | Obstacle:
        match: dict[sympy.Symbol, sympy.Expr] | Obstacle | None
        for q in _by_size(self.a):
            match = self._matched(q)
            if match is None:
                match = self._solved(q)
            if isinstance(match, Obstacle):
                return match
            self.values |= match
            self.of |= dict.fromkeys(match, q.name)
        values = {symbol: x.xreplace(self.values) for symbol, x in self.values.items()}
        public = {symbol: t.symbol for symbol, t in self.theirs.items()}
        for q in self.a.quantities.values():
            unbounded = any(values.get(s) in INFINITE for s in q.expr.free_symbols)
            if not unbounded and not equal(q.expr.xreplace(values), self.targets[q.name]):
                return Obstacle(q.name, "what the others need it to be does not give it")
        return [
            Setting(t, values[t.symbol].xreplace(public), self.of[t.symbol])
            for t in self.a.tensors.values()
            if t.symbol in values and not self._keeps_name(t, values[t.symbol])
        ]

    def _keeps_name(self, t: Tensor, x: sympy.Expr) -> bool:
        other = self.theirs.get(x)
        return other is not None and (other.name, _kind(other)) == (t.name, _kind(t))

    def _matched(self, q: Quantity) -> dict[sympy.Symbol, sympy.Expr] | None:
        """The renaming of tensors that makes an expression what it has to be; None where there is none."""
        target = self.targets[q.name]
        ours = [t for t in _tensors(self.a, q.expr) if t.symbol not in self.values]
        theirs = {t.name: symbol for symbol, t in self.theirs.items() if symbol in target.free_symbols}
        for _, found in zip(self.tries, _assignments(ours, [self.b.tensors[n] for n in theirs]), strict=False):
            match = {self.a.tensors[x].symbol: theirs[y.name] for x, y in found.items()}
            if equal(q.expr.xreplace(self.values | match), target):
                return match
        return None

    def _solved(self, q: Quantity) -> dict[sympy.Symbol, sympy.Expr] | Obstacle:
        """The value of one tensor, which no other quantity has, that makes an expression what it has to be."""
        expr, target = q.expr.xreplace(self.values), self.targets[q.name]
        others = [p.expr for p in self.a.quantities.values() if p.name != q.name]
        free = [t for t in _tensors(self.a, q.expr) if t.symbol not in self.values]
        reason = "no input or parameter of it is free to be set"
        for t in free:
            if any(t.symbol in e.free_symbols for e in others):
                continue
            beside = [o for o in free if o is not t]
            needed = {*self._axes(target), *(x for o in beside for x in o.axes)}
            lacking = [x for x in "BTHKVMD" if x in needed and x not in t.axes]
            if any(o.name in self.b.tensors for o in beside):
                continue  # it would mean two things in what t has to be
            if lacking:
                along = " ".join(lacking)
                reason = f"{t.name} has the axes {t.layout}, and what it would have to be varies along {along} too"
                continue
            solution = inverted(expr, t.symbol, target)
            if solution is not None and _holds(expr, t.symbol, solution, target):
                return {t.symbol: solution}
            reason = f"no value of {t.name} gives it"
        return Obstacle(q.name, reason)

    def _axes(self, expr: sympy.Expr) -> list[str]:
        """The axes along which a target varies."""
        found = {x for symbol, t in self.theirs.items() if symbol in expr.free_symbols for x in t.axes}
        return [*found, *("H" for s in expr.free_symbols if s == HEAD)]


def _holds(expr: sympy.Expr, x: sympy.Symbol, solution: sympy.Expr, target: sympy.Expr) -> bool:
    if solution in INFINITE:
        return True
    try:
        real = all(isinstance(value(solution, at), mpmath.mpf) for at in _points(solution.free_symbols))
    except (NotImplementedError, ValueError, ZeroDivisionError, TypeError):
        return False
    return real and equal(expr.xreplace({x: solution}), target)


def inverted(expr: sympy.Expr, x: sympy.Symbol, target: sympy.Expr) -> sympy.Expr | None:
    """What x has to be for an expression to be the target; None where that is not found. x may occur once."""
    if sum(e == x for e in sympy.preorder_traversal(expr)) != 1:
        return None
    found = _peeled(expr, x, target)
    if found is None or not found.has(sympy.zoo, sympy.oo, -sympy.oo, sympy.nan):
        return found if found is None else sympy.expand_log(found.replace(SafeExp, sympy.exp))
    near = _peeled(expr, x, target - sympy.Rational(1, 10**30))  # a decay comes near 0 from below
    try:
        return None if near is None else sympy.oo * math.copysign(1, value(near, {}))
    except (KeyError, TypeError, NotImplementedError):
        return None


def _peeled(expr: sympy.Expr, x: sympy.Symbol, target: sympy.Expr) -> sympy.Expr | None:
    """Undoes one operation after the other, the outermost first."""
    while expr != x:
        inner = next(e for e in expr.args if x in e.free_symbols)
        rest = [e for e in expr.args if e is not inner]
        if isinstance(expr, sympy.Add):
            target = target - sympy.Add(*rest)
        elif isinstance(expr, sympy.Mul):
            target = target / sympy.Mul(*rest)
        elif isinstance(expr, sympy.exp | SafeExp):
            target = sympy.log(target)
        elif isinstance(expr, sympy.log):
            target = sympy.exp(target)
        elif isinstance(expr, LogSigmoid):
            target = target - sympy.log(1 - sympy.exp(target))
        elif isinstance(expr, Sigmoid):
            target = sympy.log(target / (1 - target))
        elif isinstance(expr, Softplus):
            target = sympy.log(sympy.exp(target) - 1)
        else:
            return None
        expr = inner
    return target
