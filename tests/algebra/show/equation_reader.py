"""Reads equations in their plain-text notation and computes what they say, one number at a time.

It knows the notation and nothing of the program behind it: juxtaposition is a product, `Σ_{j<t} x[j]` a sum over the
letters under the sign that are not bound yet, `x where i ≤ t` is 0 elsewhere, `B_s(t)` is the block of s rows around t.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping

import numpy as np

TOKEN = re.compile(r"\s*(Σ_(?:\{[^}]*\}|\w+)|#\{[^}]*\}|\d+\.?\d*(?:e-?\d+)?|[^\W\d]\w*'*|[][()+\-/^,])")
FUNCTIONS: dict[str, Callable[..., float]] = {
    "exp": math.exp,
    "log": math.log,
    "min": min,
    "max": max,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "logsigmoid": lambda x: -math.log1p(math.exp(-x)),
    "elu": lambda x: x if x > 0 else math.expm1(x),
}
Letters = Mapping[str, int]


class Sheet:
    """Values by name, filled in equation by equation. `rows` tokens of one chunk, `m` features, `c` value channels."""

    def __init__(self, rows: int, m: int, c: int, values: Mapping[str, np.ndarray]) -> None:
        self.values = {name: np.asarray(value, dtype=float) for name, value in values.items()}
        levels = [2**k for k in range(rows.bit_length() - 1)]
        self.ranges = {
            **dict.fromkeys("tijrpl", range(rows)),
            **dict.fromkeys("mn", range(m)),
            **dict.fromkeys("cd", range(c)),
            "s": levels,
        }

    def read(self, equation: str) -> None:
        """Compute `name[letters] = …` for every value of the letters. A leaf, `name: …`, must be there already."""
        if ": " in equation and " = " not in equation:
            name = equation.split("[")[0].split(":")[0]
            assert name in self.values, f"nothing gives {name}"
            return
        left, right = equation.removesuffix(", 0 after the last token").split(" = ", 1)
        name, _, letters = left.removesuffix("]").partition("[")
        axes = letters.split(",") if letters else []
        found = np.zeros([self._size(a) for a in axes])
        for point in itertools.product(*(self.ranges[a] for a in axes)):
            here = dict(zip(axes, point, strict=True))
            found[self._index(here)] = self.evaluate(right, here)
        self.values[name] = found

    def evaluate(self, text: str, letters: Letters) -> float:
        return _Reader(self, text).everything(letters)

    def look_up(self, name: str, letters: list[str], bound: Letters) -> float:
        return float(self.values[name][self._index({a: bound[a] for a in letters})])

    def _index(self, letters: Letters) -> tuple[int, ...]:
        return tuple(x.bit_length() - 1 if a == "s" else x for a, x in letters.items())

    def _size(self, letter: str) -> int:
        return len(self.ranges[letter])

    def below(self, under: str, bound: Letters) -> list[Letters]:
        """The letters under a sum sign that are free, in every way that its conditions allow."""
        if under == "chunks":
            return [dict(bound)]
        if under == "tokens":
            under = "t"
        free = [a for a in dict.fromkeys(re.findall(r"(?<![B_\w])\w(?!\w)", under)) if a not in bound]
        points = itertools.product(*(self.ranges[a] for a in free))
        all_of_them = [{**bound, **dict(zip(free, p, strict=True))} for p in points]
        return [b for b in all_of_them if all(holds(c, b) for c in under.split(", "))]


def holds(condition: str, letters: Letters) -> bool:
    """Whether i<j≤t, j∈B_s(t), or `B_s(i) is the sibling before B_s(t)`."""
    sibling = re.fullmatch(r"B_s\((\w)\) is the sibling before B_s\((\w)\)", condition)
    if sibling:
        first, second = (letters[a] // letters["s"] for a in sibling.groups())
        return first + 1 == second and first % 2 == 0
    member = re.fullmatch(r"(\w)∈B_s\((\w)\)", condition)
    if member:
        a, b = (letters[x] // letters["s"] for x in member.groups())
        return a == b
    parts = re.split(r"([<>≤≥])", condition.replace(" ", ""))
    compare = {"<": lambda a, b: a < b, ">": lambda a, b: a > b, "≤": lambda a, b: a <= b, "≥": lambda a, b: a >= b}
    triples = zip(parts[::2], parts[1::2], parts[2::2], strict=False)
    return all(compare[sign](letters[a], letters[b]) for a, sign, b in triples)


class _Reader:
    """A descent through one right side; every rule returns a function of the letters."""

    def __init__(self, sheet: Sheet, text: str) -> None:
        self.sheet = sheet
        self.text = text
        self.at = 0

    def everything(self, letters: Letters) -> float:
        value = self.kept()
        assert not self.text[self.at :].strip(), f"what is {self.text[self.at :]!r} in {self.text!r}?"
        return value(letters)

    def peek(self) -> str:
        found = TOKEN.match(self.text, self.at)
        return found.group(1) if found else ""

    def next(self, expected: str = "") -> str:
        found = TOKEN.match(self.text, self.at)
        assert found and expected in ("", found.group(1)), f"no {expected or 'more'} at {self.text[self.at :]!r}"
        self.at = found.end()
        return found.group(1)

    def kept(self) -> Callable[[Letters], float]:
        value = self.sum()
        if self.peek() != "where":
            return value
        self.next()
        condition = re.match(r"\s*(B_s\(\w\) is the sibling before B_s\(\w\)|\w [≤<≥>] \w)", self.text[self.at :])
        self.at += condition.end()
        return lambda b: value(b) if holds(condition.group(1), b) else 0.0

    def sum(self) -> Callable[[Letters], float]:
        terms = [(-1 if self._sign("-") else 1, self.sigma())]
        while self.peek() in ("+", "-"):
            terms.append((1 if self.next() == "+" else -1, self.sigma()))
        return lambda b: sum(sign * term(b) for sign, term in terms)

    def _sign(self, sign: str) -> bool:
        return self.peek() == sign and bool(self.next())

    def sigma(self) -> Callable[[Letters], float]:
        if not self.peek().startswith("Σ"):
            return self.fraction()
        under = self.next()[2:].strip("{}")
        body = self.sigma()
        return lambda b: sum(body(x) for x in self.sheet.below(under, b))

    def fraction(self) -> Callable[[Letters], float]:
        top = self.product()
        if not self._sign("/"):
            return top
        bottom = self.power()
        return lambda b: top(b) / bottom(b)

    def product(self) -> Callable[[Letters], float]:
        factors = [self.power()]
        while self.peek() and self.peek() not in ("+", "-", "/", ")", "]", ",", "^", "where"):
            factors.append(self.power())
        return lambda b: math.prod(f(b) for f in factors)

    def power(self) -> Callable[[Letters], float]:
        base = self.atom()
        if not self._sign("^"):
            return base
        exponent = self.atom()
        return lambda b: base(b) ** exponent(b)

    def atom(self) -> Callable[[Letters], float]:
        token = self.next()
        if token == "(":
            inner = self.kept()
            self.next(")")
            return inner
        if token.startswith("#"):
            return lambda b: float(len(self.sheet.below(token[2:-1], b)))
        if token[0].isdigit():
            return lambda b: float(token)
        if self.text[self.at : self.at + 1] == "(":
            return self.call(token)
        letters: list[str] = []
        if self.text[self.at : self.at + 1] == "[":
            inside, _, _ = self.text[self.at + 1 :].partition("]")
            self.at += len(inside) + 2
            letters = inside.split(",")
        return lambda b: self.sheet.look_up(token, letters, b)

    def call(self, name: str) -> Callable[[Letters], float]:
        self.next("(")
        args = [self.kept()]
        while self._sign(","):
            args.append(self.kept())
        self.next(")")
        return lambda b: FUNCTIONS[name](*(a(b) for a in args))
