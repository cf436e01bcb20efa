"""The two ways mathematics is written down: plain unicode text, and LaTeX.

A `Piece` is a fragment of mathematics and how tightly it holds together, so that whoever joins two fragments knows
where brackets are needed. A `Style` spells the fragments; everything above it is written once for both styles.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum


class Binds(IntEnum):
    """How tightly a piece holds together, loosest first."""

    WHERE = 0
    SUM = 1
    SIGMA = 2
    FRACTION = 3
    PRODUCT = 4
    POWER = 5
    ATOM = 6


@dataclass(frozen=True)
class Piece:
    """A fragment of mathematics in one style. `varies`: it bears an index, so constants are written before it."""

    text: str
    binds: Binds = Binds.ATOM
    varies: bool = False

    def __str__(self) -> str:
        return self.text

    @property
    def negative(self) -> bool:
        return self.text.startswith("-")


SPECIAL = {
    "log_decay": ("ℓ", r"\ell"),
    "log_decay_key": ("ℓ_key", r"\ell^{\mathrm{key}}"),
    "log_decay_value": ("ℓ_value", r"\ell^{\mathrm{value}}"),
}
"""Names of the recurrence that the field writes with a letter of their own: text, LaTeX."""

GREEK = frozenset(
    ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu"]
    + ["xi", "pi", "rho", "sigma", "tau", "phi", "chi", "psi", "omega"]
)

RELATIONS = {"<=": ("≤", r"\leq"), ">=": ("≥", r"\geq"), "!=": ("≠", r"\neq"), "in": ("∈", r"\in")}

NO_BREAK = "\u00a0"

SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


class Style:
    """Unicode text: `scores[t,i] = Σ_m query[t,m] key[i,m]`."""

    name = "text"
    column = 0
    times = " "
    where = " where "
    arrow = "←"
    infinity = "∞"

    def symbol(self, name: str) -> str:
        """A variable by name; a gradient's name starts with d_."""
        if name.startswith("d_"):
            return "d_" + self.symbol(name[2:])
        return SPECIAL[name][0] if name in SPECIAL else name

    def indexed(self, name: str, letters: Sequence[str]) -> Piece:
        return Piece(self.symbol(name) + (f"[{','.join(letters)}]" if letters else ""), varies=bool(letters))

    def numbered(self, name: str, token: int) -> Piece:
        """A variable at a token given by number: ℓ₂."""
        return Piece(self.symbol(name) + str(token).translate(SUBSCRIPTS))

    def relation(self, text: str) -> str:
        """A condition written with <=, >=, != and `in` between blanks, e.g. "i <= t": i ≤ t."""
        return " ".join(RELATIONS[w][self.column] if w in RELATIONS else w for w in text.split(" "))

    def sigma(self, under: str) -> str:
        """The sum sign with what runs beneath it; conditions as in `relation`."""
        under = self.relation(under)
        under = under.replace(", ", "\0").replace(" ", "").replace("\0", ", ")
        return f"Σ_{under}" if under.isalnum() and (len(under) == 1 or len(under) > 3) else f"Σ_{{{under}}}"

    def block(self, row: str, level: str) -> str:
        """The block of rows that holds `row`, at one level of the pair tree."""
        return f"B_{level}({row})"

    def count(self, condition: str) -> Piece:
        inner = self.relation(condition)
        return Piece(f"#{{{inner.replace(' ', '')}}}", varies=True)

    def words(self, text: str) -> str:
        """Prose inside a formula."""
        return text

    def prose(self, text: str) -> str:
        """Words outside formulas, of which no sign means anything else."""
        return text

    def number(self, value: float | int) -> Piece:
        text = repr(value)
        if "e" in text:
            mantissa, exponent = text.split("e")
            text = f"{mantissa}e{int(exponent)}"
        elif text.endswith(".0"):
            text = text[:-2]
        return Piece(text, Binds.SUM if text.startswith("-") else Binds.ATOM)

    def inline(self, text: str) -> str:
        """Mathematics inside prose, in one piece."""
        return text.replace(" ", NO_BREAK)

    def brackets(self, text: str) -> str:
        return f"({text})"

    def absolute(self, text: str) -> str:
        return f"|{text}|"

    def fraction(self, top: Piece, bottom: Piece) -> Piece:
        a, b = self.within(top, Binds.PRODUCT), self.within(bottom, Binds.POWER)
        short = bottom.text.isdigit() or len(top.text + bottom.text) < 8
        return Piece(f"{a}/{b}" if short else f"{a} / {b}", Binds.FRACTION)

    def power(self, base: Piece, exponent: Piece) -> Piece:
        return Piece(f"{self.within(base, Binds.ATOM)}^{self.within(exponent, Binds.ATOM)}", Binds.POWER)

    def slope(self, of: str, by: str) -> str:
        """The name of a derivative."""
        return f"∂{of}/∂{by}"

    def exp(self, x: Piece) -> Piece:
        return self.call("exp", [x])

    def sqrt(self, x: Piece) -> Piece:
        return self.call("sqrt", [x])

    def call(self, name: str, args: Iterable[Piece]) -> Piece:
        return Piece(f"{name}({', '.join(a.text for a in args)})")

    def running(self, name: str, over: Sequence[str], args: Iterable[Piece]) -> Piece:
        """A function of all values that its arguments take as letters run: max_m(x[m])."""
        under = over[0] if len(over) == 1 else f"{{{','.join(over)}}}"
        return self.call(f"{name}_{under}", args)

    def largest(self, over: str, x: Piece) -> Piece:
        return self.running("max", [over], [x])

    def element(self, vector: Piece, letter: str) -> Piece:
        """One element of a vector."""
        return Piece(f"{self.within(vector, Binds.ATOM)}[{letter}]", varies=True)

    def cases(self, branches: Sequence[tuple[Piece, str | None]]) -> Piece:
        """Values with their conditions; None is "otherwise"."""
        said = [f"{value} where {when}" if when is not None else f"{value} otherwise" for value, when in branches]
        return Piece(f"({', '.join(said)})")

    def within(self, x: Piece, least: Binds) -> str:
        """The piece, in brackets unless it holds together at least as tightly as `least`."""
        return x.text if x.binds >= least else self.brackets(x.text)

    def product(self, factors: Sequence[Piece]) -> Piece:
        if len(factors) == 1:
            return factors[0]
        return Piece(self.times.join(self.within(f, Binds.PRODUCT) for f in factors), Binds.PRODUCT)

    def total(self, terms: Sequence[Piece]) -> Piece:
        """The sum of its terms, a minus sign in front of a term becoming a subtraction."""
        if len(terms) == 1:
            return terms[0]
        text = self.within(terms[0], Binds.SUM)
        for term in terms[1:]:
            part = self.within(term, Binds.SUM)
            text += f" - {part[1:]}" if part.startswith("-") else f" + {part}"
        return Piece(text, Binds.SUM)

    def minus(self, x: Piece) -> Piece:
        return Piece("-" + self.within(x, Binds.SIGMA), Binds.SUM)

    def summed(self, under: str, x: Piece) -> Piece:
        return Piece(f"{self.sigma(under)} {self.within(x, Binds.SIGMA)}", Binds.SIGMA)

    def restricted(self, x: Piece, condition: str) -> Piece:
        """The piece where a condition holds, 0 elsewhere; the condition is already spelled in this style."""
        return Piece(self.within(x, Binds.SUM) + self.where + condition, Binds.WHERE)


class Latex(Style):
    r"""LaTeX, in the subset that KaTeX, MathJax and matplotlib share: `\mathrm{scores}_{t,i} = \sum_{m} …`."""

    name = "latex"
    column = 1
    times = r" \, "
    where = r" \quad \mathrm{where} \; "
    arrow = r"\leftarrow"
    infinity = r"\infty"

    def symbol(self, name: str) -> str:
        if name.startswith("d_"):
            rest = self.symbol(name[2:])
            return r"\mathrm{d\," + rest[8:] if rest.startswith(r"\mathrm{") else r"\mathrm{d}" + rest
        if name in SPECIAL:
            return SPECIAL[name][1]
        if name.lower() in GREEK and name == name.lower():
            return "\\" + name
        return name if len(name) == 1 else r"\mathrm{" + name.replace("_", r"\_") + "}"

    def indexed(self, name: str, letters: Sequence[str]) -> Piece:
        return Piece(self.symbol(name) + (f"_{{{','.join(letters)}}}" if letters else ""), varies=bool(letters))

    def numbered(self, name: str, token: int) -> Piece:
        return Piece(f"{self.symbol(name)}_{{{token}}}")

    def sigma(self, under: str) -> str:
        word = under.isalpha() and len(under) > 3
        return r"\sum_{" + (r"\mathrm{" + under + "}" if word else self.relation(under)) + "}"

    def block(self, row: str, level: str) -> str:
        return f"B_{{{level}}}({row})"

    def count(self, condition: str) -> Piece:
        return Piece(r"\#\{" + self.relation(condition) + r"\}", varies=True)

    def words(self, text: str) -> str:
        return r"\mathrm{" + text.replace("_", r"\_").replace(" ", r"\ ") + "}"

    def prose(self, text: str) -> str:
        text = re.sub(r"([_#%&$])", r"\\\1", text).replace("^", r"\^{}")
        return text.replace("ℓ", r"\(\ell\)").replace("×", r"\(\times\)")

    def number(self, value: float | int) -> Piece:
        text = super().number(value).text
        if "e" in text:
            mantissa, exponent = text.split("e")
            text = f"10^{{{exponent}}}" if mantissa == "1" else rf"{mantissa} \cdot 10^{{{exponent}}}"
            return Piece(text, Binds.PRODUCT)
        return Piece(text, Binds.SUM if text.startswith("-") else Binds.ATOM)

    def inline(self, text: str) -> str:
        return rf"\( {text} \)"

    def brackets(self, text: str) -> str:
        return rf"\left( {text} \right)"

    def absolute(self, text: str) -> str:
        return rf"\left| {text} \right|"

    def fraction(self, top: Piece, bottom: Piece) -> Piece:
        return Piece(rf"\frac{{{top}}}{{{bottom}}}", Binds.PRODUCT)

    def power(self, base: Piece, exponent: Piece) -> Piece:
        return Piece(f"{self.within(base, Binds.ATOM)}^{{{exponent}}}", Binds.POWER)

    def slope(self, of: str, by: str) -> str:
        return rf"\frac{{\partial {of}}}{{\partial {by}}}"

    def exp(self, x: Piece) -> Piece:
        return Piece(f"e^{{{x}}}", Binds.POWER)

    def sqrt(self, x: Piece) -> Piece:
        return Piece(rf"\sqrt{{{x}}}")

    def call(self, name: str, args: Iterable[Piece]) -> Piece:
        command = f"\\{name}" if name in ("log", "sin", "cos", "tanh", "max", "min") else rf"\operatorname{{{name}}}"
        return Piece(command + self.brackets(", ".join(a.text for a in args)))

    def running(self, name: str, over: Sequence[str], args: Iterable[Piece]) -> Piece:
        command = r"\max" if name == "max" else rf"\operatorname{{{name}}}"
        return Piece(f"{command}_{{{','.join(over)}}}" + self.brackets(", ".join(a.text for a in args)))

    def element(self, vector: Piece, letter: str) -> Piece:
        return Piece(f"{self.within(vector, Binds.ATOM)}_{{{letter}}}", varies=True)

    def cases(self, branches: Sequence[tuple[Piece, str | None]]) -> Piece:
        rows = [f"{value} & {when or self.words('otherwise')}" for value, when in branches]
        return Piece(r"\begin{cases} " + r" \\ ".join(rows) + r" \end{cases}")


STYLES: dict[str, Style] = {style.name: style for style in (Style(), Latex())}


def style_named(name: str) -> Style:
    """Raises ValueError for a style that does not exist."""
    if name not in STYLES:
        raise ValueError(f"style is {name!r}; there are {', '.join(map(repr, STYLES))}")
    return STYLES[name]
