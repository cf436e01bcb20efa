"""Tokens → syntax tree, with Python's precedence.

    expression   sum [comparison sum]
    sum          product {(+ | -) product}
    product      unary {(* | /) unary}
    unary        (- | +) unary | power
    power        atom [** unary]
    atom         number | name | name "(" expression {"," expression} ")" | "(" expression ")"

So -x**2 is -(x**2), and x**-1**2 is x**(-(1**2)). Sums and products are kept flat: a tree is as deep as its
parentheses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from recgen.spec.tokens import ExpressionError, Token, tokenize

MAX_DEPTH = 24
MAX_DIGITS = 40
MAX_NUMBER_EXPONENT = 300
COMPARISONS = ("<=", ">=", "==", "!=", "<", ">")

_PYTHON_WORDS: dict[str, tuple[str, str]] = {
    "and": ("conditions are not joined here", "nest where: where(a < b, where(c < d, x, y), y)"),
    "or": ("conditions are not joined here", "nest where: where(a < b, x, where(c < d, x, y))"),
    "not": ("conditions are not negated here", "turn the comparison around"),
    "if": ("if is no word of this language", "write where(condition, a, b)"),
    "else": ("else is no word of this language", "write where(condition, a, b)"),
    "lambda": ("functions are not defined here", "write the expression itself"),
}


@dataclass(frozen=True)
class Number:
    text: str
    value: Fraction
    start: int
    end: int


@dataclass(frozen=True)
class Name:
    name: str
    start: int
    end: int


@dataclass(frozen=True)
class Negate:
    operand: Node
    start: int
    end: int


@dataclass(frozen=True)
class Chain:
    """first op node op node …, from left to right; the operators are all + or -, or all * or /."""

    first: Node
    rest: tuple[tuple[str, Node], ...]
    start: int
    end: int


@dataclass(frozen=True)
class Power:
    base: Node
    exponent: Node
    start: int
    end: int


@dataclass(frozen=True)
class Call:
    """A function applied to arguments; `start` is where the function's name begins."""

    function: str
    arguments: tuple[Node, ...]
    start: int
    end: int


@dataclass(frozen=True)
class Compare:
    operator: str
    left: Node
    right: Node
    start: int
    end: int


Node = Number | Name | Negate | Chain | Power | Call | Compare


def parse(text: str) -> Node:
    """The syntax tree of an expression. Raises ExpressionError at the first thing that cannot be read."""
    return _Parser(tokenize(text)).whole()


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.index = 0
        self.depth = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def whole(self) -> Node:
        if self.tokens[0].kind == "end":
            raise ExpressionError(0, 1, "the expression is empty", "write a number or an expression")
        node = self.expression()
        if self.token.kind != "end":
            raise self._stray()
        return node

    def expression(self) -> Node:
        left = self.sum()
        if self.token.text not in COMPARISONS:
            return left
        operator = self._next().text
        right = self.sum()
        if self.token.text in COMPARISONS:
            fix = "nest where: where(a < b, where(b < c, x, y), y)"
            raise ExpressionError(self.token.start, self.token.end, "comparisons are not chained here", fix)
        return Compare(operator, left, right, left.start, right.end)

    def sum(self) -> Node:
        return self._chain(self.product, ("+", "-"))

    def product(self) -> Node:
        return self._chain(self.unary, ("*", "/"))

    def _chain(self, operand: Callable[[], Node], operators: tuple[str, ...]) -> Node:
        first = operand()
        rest: list[tuple[str, Node]] = []
        while self.token.kind == "operator" and self.token.text in operators:
            operator = self._next().text
            rest.append((operator, operand()))
        return Chain(first, tuple(rest), first.start, rest[-1][1].end) if rest else first

    def unary(self) -> Node:
        if self.token.text not in ("-", "+"):
            return self.power()
        sign = self._next()
        self._deeper(sign)
        operand = self.unary()
        self.depth -= 1
        return Negate(operand, sign.start, operand.end) if sign.text == "-" else operand

    def power(self) -> Node:
        base = self.atom()
        if self.token.text != "**":
            return base
        self._deeper(self._next())
        exponent = self.unary()
        self.depth -= 1
        return Power(base, exponent, base.start, exponent.end)

    def atom(self) -> Node:
        token = self.token
        if token.kind == "number":
            return self._number(self._next())
        if token.kind == "name" and token.text not in _PYTHON_WORDS:
            self._next()
            return self._call(token) if self.token.text == "(" else Name(token.text, token.start, token.end)
        if token.text == "(":
            self._deeper(self._next())
            node = self.expression()
            self._close(token)
            return node
        raise self._stray()

    def _call(self, name: Token) -> Node:
        opening = self._next()
        self._deeper(opening)
        if self.token.text == ")":
            raise ExpressionError(name.start, self.token.end, f"{name.text}() has no argument", f"write {name.text}(…)")
        arguments = [self.expression()]
        while self.token.text == ",":
            self._next()
            arguments.append(self.expression())
        end = self._close(opening)
        return Call(name.text, tuple(arguments), name.start, end)

    def _close(self, opening: Token) -> int:
        if self.token.kind == "end":
            raise ExpressionError(opening.start, opening.end, "this ( is never closed", "add a )")
        if self.token.text != ")":
            raise self._stray()
        self.depth -= 1
        return self._next().end

    def _number(self, token: Token) -> Number:
        mantissa, _, exponent = token.text.lower().partition("e")
        if len(mantissa) > MAX_DIGITS or len(exponent) > 5 or abs(int(exponent or 0)) > MAX_NUMBER_EXPONENT:
            limits = f"at most {MAX_DIGITS} digits and an exponent of at most {MAX_NUMBER_EXPONENT}"
            raise ExpressionError(token.start, token.end, "this number is out of range", f"write {limits}")
        value = Fraction(mantissa.rstrip(".")) * Fraction(10) ** int(exponent or 0)
        return Number(token.text, value, token.start, token.end)

    def _deeper(self, token: Token) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ExpressionError(token.start, token.end, f"nested more than {MAX_DEPTH} deep", "write it flatter")

    def _next(self) -> Token:
        token = self.token
        self.index += 1
        return token

    def _stray(self) -> ExpressionError:
        token = self.token
        if token.kind == "end":
            return ExpressionError(max(0, token.start - 1), token.start, "the expression ends too early", "finish it")
        if token.text in _PYTHON_WORDS:
            reason, fix = _PYTHON_WORDS[token.text]
            return ExpressionError(token.start, token.end, reason, fix)
        if token.text == ")":
            return ExpressionError(token.start, token.end, "this ) closes nothing", "remove it")
        if token.kind in ("name", "number") or token.text == "(":
            reason = f"an operator is missing before {token.text!r}"
            return ExpressionError(token.start, token.end, reason, "write * to multiply")
        return ExpressionError(token.start, token.end, f"{token.text!r} stands where a value is needed", "")


_TIGHT = {Compare: 0, Negate: 3, Power: 4}


def unparse(node: Node) -> str:
    """The tree in the language's own spelling: single spaces, only the parentheses that it needs."""
    match node:
        case Number(text=text):
            return text
        case Name(name=name):
            return name
        case Negate(operand=operand):
            return "-" + _inside(operand, 3)
        case Chain(first=first, rest=rest):
            level = _level(node)
            return _inside(first, level + 1) + "".join(f" {op} {_inside(item, level + 1)}" for op, item in rest)
        case Power(base=base, exponent=exponent):
            return f"{_inside(base, 5)} ** {_inside(exponent, 3)}"
        case Call(function=function, arguments=arguments):
            return f"{function}({', '.join(unparse(argument) for argument in arguments)})"
        case Compare(operator=operator, left=left, right=right):
            return f"{_inside(left, 1)} {operator} {_inside(right, 1)}"
    raise TypeError(f"not a syntax tree: {node!r}")


def _level(node: Node) -> int:
    if isinstance(node, Chain):
        return 1 if node.rest[0][0] in "+-" else 2
    return _TIGHT.get(type(node), 5)


def _inside(node: Node, level: int) -> str:
    text = unparse(node)
    return text if _level(node) >= level else f"({text})"


def names_in(node: Node) -> list[Name]:
    """Every name that is used as a value, in the order of the text."""
    match node:
        case Name():
            return [node]
        case Number():
            return []
        case Negate(operand=operand):
            return names_in(operand)
        case Chain(first=first, rest=rest):
            return names_in(first) + [name for _, item in rest for name in names_in(item)]
        case Power(base=base, exponent=exponent):
            return names_in(base) + names_in(exponent)
        case Call(arguments=arguments):
            return [name for argument in arguments for name in names_in(argument)]
        case Compare(left=left, right=right):
            return names_in(left) + names_in(right)
    raise TypeError(f"not a syntax tree: {node!r}")
