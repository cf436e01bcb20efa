"""Rewriting an expression into forms that neither overflow nor cancel. The meaning does not change.

`stable` stays in the language: log(sigmoid(x)) becomes logsigmoid(x), 1 - sigmoid(x) becomes sigmoid(-x), exp(x)/(1 +
exp(x)) becomes sigmoid(x), log(exp(x)·y) becomes x + log(y). `guarded` keeps exp from overflowing in the branch of a
`where` that is not taken. `printable` then also uses `Log1p`, `Expm1`, which printers know and the rest of the
compiler never meets, and relu(x) + exp(min(x, 0)) for elu(x) + 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
from sympy import ITE, Add, Basic, Expr, Max, Min, Mul, Number, Piecewise, Pow, Rel, S, Symbol, exp, log

from recgen.algebra.activations import Activation, Elu, LogSigmoid, Relu, Sigmoid, Softplus


class Log1p(Activation):
    """log(1 + x)."""

    @staticmethod
    def value(x: mpmath.mpf) -> mpmath.mpf:
        return mpmath.log1p(x)

    @staticmethod
    def elementary(x: Expr) -> Expr:
        return log(1 + x)

    def fdiff(self, argindex: int = 1) -> Expr:
        return 1 / (1 + self.args[0])


class Expm1(Activation):
    """exp(x) - 1."""

    @staticmethod
    def value(x: mpmath.mpf) -> mpmath.mpf:
        return mpmath.expm1(x)

    @staticmethod
    def elementary(x: Expr) -> Expr:
        return exp(x) - 1

    def fdiff(self, argindex: int = 1) -> Expr:
        return exp(self.args[0])


def stable(expr: Expr) -> Expr:
    """The same expression in stable forms of the language."""
    return _rewrite(expr, {Add: _sigmoid_sum, Mul: _sigmoid_product, Pow: _sigmoid_power, exp: _exp, log: _log})


def guarded(expr: Expr) -> Expr:
    """The same expression, with exp(x) in the branch x <= c of a `where` written exp(min(x, c)), and its mirror image.

    Tensor code evaluates both branches; an infinite value in the one not taken would make gradients NaN.
    """
    return _rewrite(expr, {Piecewise: _guarded_branches})


def printable(expr: Expr) -> Expr:
    """The same expression in the forms printers know: stable and guarded, with Log1p and Expm1 for their patterns."""
    return _rewrite(guarded(stable(expr)), {Add: _expm1_sum, log: _log1p, ITE: lambda node: node.to_nnf()})


def one_exponential(expr: Expr) -> Expr:
    """exp(a) · exp(b) as exp(a + b), which overflows where the product does, not before."""
    return _rewrite(expr, {Mul: _joined_exponentials})


def _joined_exponentials(node: Mul) -> Expr:
    powers = [factor for factor in node.args if isinstance(factor, exp)]
    rest = [factor for factor in node.args if factor not in powers]
    return Mul(*rest, exp(Add(*(power.args[0] for power in powers)))) if len(powers) > 1 else node


def with_expm1(expr: Add) -> Expr:
    """A sum with Expm1(x) for exp(x) - 1."""
    return _pair(expr, exp, lambda factor, x: factor * Expm1(x))


def _rewrite(node: Basic, rules: dict[type, Callable[[Any], Basic]]) -> Basic:
    if not node.args:
        return node
    args = [_rewrite(arg, rules) for arg in node.args]
    rebuilt = node if tuple(args) == node.args else node.func(*args)
    rule = rules.get(type(rebuilt))
    return rule(rebuilt) if rule else rebuilt


def _guarded_branches(node: Piecewise) -> Expr:
    branches: list[tuple[Expr, Basic]] = []
    earlier: list[Basic] = []
    for branch, condition in node.args:
        for relation in [*(~known for known in earlier), condition]:
            branch = _clamped(branch, relation)
        branches.append((branch, condition))
        earlier.append(condition)
    unchanged = all(new == old for (new, _), (old, _) in zip(branches, node.args, strict=True))
    return node if unchanged else Piecewise(*branches)


def _clamped(branch: Expr, relation: Basic) -> Expr:
    """The branch, where the relation is known to bound a symbol by a number, with that symbol clamped inside exp."""
    if not (isinstance(relation, Rel) and isinstance(relation.lhs, Symbol) and isinstance(relation.rhs, Number)):
        return branch
    x, c = relation.args
    clamp, sign = {"<": (Min, 1), "<=": (Min, 1), ">": (Max, -1), ">=": (Max, -1)}.get(relation.rel_op, (None, 0))

    def overflows(node: Basic) -> bool:
        return isinstance(node, exp) and bool((node.args[0].expand().coeff(x) * sign).is_positive)

    if clamp is None:
        return branch
    return branch.replace(overflows, lambda node: node.xreplace({x: clamp(x, c)}))


def _is_one_plus_exp(node: Basic) -> Expr | None:
    """u where the node is 1 + exp(u), else None."""
    if isinstance(node, Add) and len(node.args) == 2 and node.args[0] == 1 and isinstance(node.args[1], exp):
        return node.args[1].args[0]
    return None


def _exp(node: exp) -> Expr:
    (x,) = node.args
    if isinstance(x, LogSigmoid):
        return Sigmoid(x.args[0])
    if isinstance(-x, Softplus):
        return Sigmoid(-(-x).args[0])
    return node


def _log(node: log) -> Expr:
    outside, inside = [], []
    for factor in Mul.make_args(node.args[0]):
        base, power = (factor.args[0], S.One) if isinstance(factor, exp) else factor.as_base_exp()
        if isinstance(factor, exp):
            outside.append(base)
        elif isinstance(base, Sigmoid):
            outside.append(power * LogSigmoid(base.args[0]))
        elif (u := _is_one_plus_exp(base)) is not None:
            outside.append(power * Softplus(u))
        elif isinstance(factor, Pow) and base.is_positive and power.free_symbols:
            outside.append(power * log(base))
        else:
            inside.append(factor)
    if not outside:
        return node
    rest = Mul(*inside)
    return Add(*outside, S.Zero if rest == 1 else log(rest))


def _log1p(node: log) -> Expr:
    constant, rest = node.args[0].as_coeff_Add()
    return Log1p(rest) if constant == 1 and rest != 0 else node


def _sigmoid_power(node: Pow) -> Expr:
    u = _is_one_plus_exp(node.base)
    return Sigmoid(-u) ** (-node.exp) if u is not None and node.exp.is_negative else node


def _sigmoid_product(node: Mul) -> Expr:
    factors = list(node.args)
    for factor in node.args:
        partner = Sigmoid(-factor.args[0]) if isinstance(factor, exp) else None
        if partner is not None and partner in factors:
            factors.remove(factor)
            factors[factors.index(partner)] = Sigmoid(factor.args[0])
    return node if len(factors) == len(node.args) else Mul(*factors)


def _sigmoid_sum(node: Add) -> Expr:
    return _pair(node, Sigmoid, lambda factor, x: -factor * Sigmoid(-x))


def _expm1_sum(node: Add) -> Expr:
    node = _pair(node, exp, lambda factor, x: factor * Expm1(x))
    if not isinstance(node, Add):
        return node
    return _pair(node, Elu, lambda factor, x: factor * (Relu(x) + exp(Min(x, 0))), sign=1)


def _pair(node: Add, kind: type, joined: Callable[[Expr, Expr], Expr], sign: int = -1) -> Expr:
    """Join each pair of terms a·f(x) + sign·a of a sum into joined(a, x), f being the function `kind`.

    The numbers in a sum are one term, so they are taken together: all of it is used up, or none.
    """
    terms = list(node.args)
    constant = terms.pop(0) if isinstance(terms[0], Number) else S.Zero
    left = constant
    with_symbols, with_numbers = list(terms), []
    for term in terms:
        calls: list[Expr] = [factor for factor in Mul.make_args(term) if isinstance(factor, kind)]
        if len(calls) != 1:
            continue
        rest = Mul(*(factor for factor in Mul.make_args(term) if factor != calls[0]))
        if isinstance(rest, Number):
            if abs(left - sign * rest) < abs(left):
                left -= sign * rest
                with_numbers.append((term, joined(rest, calls[0].args[0])))
        elif sign * rest in with_symbols:
            with_symbols.remove(sign * rest)
            with_symbols[with_symbols.index(term)] = joined(rest, calls[0].args[0])
    if with_numbers and left == 0:
        for term, pair in with_numbers:
            with_symbols[with_symbols.index(term)] = pair
        constant = S.Zero
    return Add(constant, *with_symbols)
