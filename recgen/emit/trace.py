"""Which line of an emitted module implements which equation.

The emitter's lines pass through `Marks`, which ends each with a number and keeps what it comes from under that number.
The marks go before the text is formatted. Formatting changes no statement, so the n-th statement of the text that was
marked is the n-th of the module.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

from recgen.algebra.derive import Derivation
from recgen.algebra.mathtext import carry_equation, equation
from recgen.algebra.program import Carry, Node
from recgen.plan.kernels import Plan

from .module import unformatted
from .notes import Notes, Origin
from .render import formatted

OPEN, CLOSE = "\ue000", "\ue001"  # of no meaning in Unicode, so nothing else is written with them
ASSIGNED = re.compile(r"\s*(\w+) \+?= ")
MARK = re.compile(f"{OPEN}(\\d+){CLOSE}")

EQUATION, OTHER = "equation", "other"
LOADS = frozenset({"load", "_load"})
STORES = frozenset({"store", "_store", "copy_"})
PLACES = frozenset(
    [
        *("program", "tile", "head", "segment", "sequence", "slot", "slots", "first", "last", "length", "row", "at"),
        *("feature", "channel", "feature_valid", "channel_valid", "chunks", "chunk", "rows_here", "time", "valid"),
        *("token", "start", "back", "reads", "t", "step", "siblings", "blocks", "scratch", "states", "h", "pair"),
        *"THKVMD",
    ]
)
"""What only says where something is: the variables of the templates' frames."""
STATEMENTS = {ast.For: "loop", ast.If: "condition", ast.Return: "result"}


@dataclass(frozen=True)
class Line:
    """One statement, or the head of one that holds others.

    number: its first line in the module. kind: "equation", or what it does instead: load, store, addressing, loop,
    condition, start, result, barrier. equation: the one that it implements, in plain text.
    """

    number: int
    code: tuple[str, ...]
    kind: str
    equation: str = ""


class Marks(Notes):
    """Writes what `Notes` writes, and keeps the equation of every line that has one."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.equations: list[str] = []

    def mark(self, line: str, origin: Origin) -> str:
        self.equations.append(self._said_of(line, origin))
        return f"{line}{OPEN}{len(self.equations) - 1}{CLOSE}"

    def _said_of(self, line: str, origin: Origin) -> str:
        """The equation; what the algebra did not name is called what it is called in the line."""
        if isinstance(origin, Node):
            said = equation(origin, names=self.names)
            variable = ASSIGNED.match(line)
            if origin.name or variable is None or re.search(rf"\b{variable[1]}\b", said):
                return said
            return equation(origin, names={**self.names, origin: variable[1]})
        return carry_equation(origin, names=self.names) if isinstance(origin, Carry) else origin


def trace(derivation: Derivation, plan: Plan) -> dict[str, tuple[Line, ...]]:
    """Every function of the module that implements an equation, by name, line by line; in the module's order."""
    marks = Marks(plan)
    marked = unformatted(derivation, plan, marks)
    found = {n: int(m[1]) for n, line in enumerate(marked.split("\n"), 1) if (m := MARK.search(line))}
    plain = MARK.sub("", marked)
    text = formatted(plain)
    source = text.split("\n")
    functions: dict[str, tuple[Line, ...]] = {}
    for before, after in zip(_functions(plain), _functions(text), strict=True):
        lines = []
        for old, new in zip(_statements(before), _statements(after), strict=True):
            ids = [found[n] for n in range(old.lineno, _end(old) + 1) if n in found]
            said = marks.equations[ids[0]] if ids else ""
            code = _code(source[new.lineno - 1 : _end(new)])
            lines.append(Line(new.lineno, code, EQUATION if ids else _kind(new), said))
        if any(line.kind == EQUATION for line in lines):
            functions[after.name] = tuple(lines)
    return functions


def _functions(text: str) -> list[ast.FunctionDef]:
    return [n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)]


def _statements(function: ast.FunctionDef) -> list[ast.stmt]:
    """The statements of a function in order, without its docstring and the functions inside it."""
    return [s for s in _below(function.body) if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]


def _below(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for s in body:
        yield s
        yield from _below(getattr(s, "body", []))
        yield from _below(getattr(s, "orelse", []))


def _end(s: ast.stmt) -> int:
    """The last line of a statement; of one that holds others, that of its head."""
    body = getattr(s, "body", None)
    if body:
        return max(s.lineno, max((n.end_lineno or 0 for n in ast.walk(_head(s)) if isinstance(n, ast.expr)), default=0))
    return s.end_lineno or s.lineno


def _head(s: ast.stmt) -> ast.AST:
    return s.iter if isinstance(s, ast.For) else s.test if isinstance(s, ast.If | ast.While) else ast.Pass()


def _code(lines: list[str]) -> tuple[str, ...]:
    """The lines without their comments."""
    text = "\n".join(lines)
    cut = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                cut[token.start[0]] = token.start[1]
    except (tokenize.TokenError, IndentationError):  # the head of a statement alone, or an indented one
        pass
    kept = [line[: cut.get(n, len(line))].rstrip() for n, line in enumerate(lines, 1)]
    return tuple(line for line in kept if line)


def _kind(s: ast.stmt) -> str:
    """What a statement does that implements no equation."""
    if type(s) in STATEMENTS:
        return STATEMENTS[type(s)]
    called = {_name(n.func) for n in ast.walk(s) if isinstance(n, ast.Call)}
    if called & STORES:
        return "store"
    if called & LOADS:
        return "load"
    if "debug_barrier" in called:
        return "barrier"
    targets = {n.id for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if isinstance(s, ast.Assign) and (isinstance(s.value, ast.Constant) or called in ({"zeros"}, {"full"})):
        return "start"
    if targets and all(_places(t) for t in targets):
        return "addressing"
    return OTHER


def _places(name: str) -> bool:
    plain = name.removesuffix("_before")
    return plain in PLACES or plain == "_" or plain.endswith(("_at", "_head", "_heads"))


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
