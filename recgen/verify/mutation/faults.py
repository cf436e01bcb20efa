"""Every small fault that a function of an emitted module could have, found over its syntax tree.

A fault replaces the text of one expression, so that everything else of the file, its lines among it, stays as it is.
Left alone are what an argument check asks and says, annotations, docstrings, and options on which no result depends.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

IDLE = frozenset({"num_warps", "num_stages", "non_blocking", "pin_memory", "strict"})
"""Options that no result depends on."""
FUNCTIONS = frozenset({"exp", "exp2", "log", "sigmoid", "logsigmoid", "softplus", "relu", "tanh", "sqrt", "abs"})
METHODS = frozenset({"tril", "triu", "cumsum", "flip", "transpose", "trans", "to", "exp", "mul", "contiguous"})
SWAPPED: dict[type[ast.operator], ast.operator] = {ast.Add: ast.Sub(), ast.Sub: ast.Add()}
COMPARED: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Lt: ast.LtE(),
    ast.LtE: ast.Lt(),
    ast.Gt: ast.GtE(),
    ast.GtE: ast.Gt(),
    ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(),
    ast.Is: ast.IsNot(),
    ast.IsNot: ast.Is(),
}
Change = tuple[str, ast.expr]


@dataclass(frozen=True)
class Fault:
    """One expression of the file replaced by another. `start` and `end` are byte offsets of the file's UTF-8 text."""

    kind: str
    function: str
    line: int
    before: str
    after: str
    start: int
    end: int

    def apply(self, source: str) -> str:
        """The file's text with the fault."""
        data = source.encode()
        return (data[: self.start] + f"({self.after})".encode() + data[self.end :]).decode()


def faults(source: str) -> list[Fault]:
    """All faults of a module's functions, in the order of the text."""
    data = source.encode()
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for name, node in _functions(ast.parse(source)):
        for expression, (kind, changed) in _changes(node):
            assert expression.end_lineno is not None and expression.end_col_offset is not None
            start = starts[expression.lineno - 1] + expression.col_offset
            end = starts[expression.end_lineno - 1] + expression.end_col_offset
            before, after = " ".join(data[start:end].decode().split()), ast.unparse(changed)
            found.append(Fault(kind, name, expression.lineno, before, after, start, end))
    return sorted(found, key=lambda fault: (fault.start, fault.end))


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Functions and methods of the file by name."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield f"{node.name}.{inner.name}", inner


def _changes(node: ast.AST) -> Iterator[tuple[ast.expr, Change]]:
    """Every expression below a node that a fault could replace, with what would replace it."""
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        for statement in node.body if isinstance(node, ast.FunctionDef) else [node.body]:
            yield from _changes(statement)  # not defaults, annotations and decorators
        return
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr) or _is_check(node) or _is_text(node):
        return
    if isinstance(node, ast.If | ast.IfExp):
        yield node.test, ("condition turned round", ast.UnaryOp(ast.Not(), node.test))
    if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) and len(node.value.elts) > 1:
        first, second, *others = node.value.elts
        yield node.value, ("results swapped", ast.Tuple([second, first, *others], ast.Load()))
    if isinstance(node, ast.Call):
        yield from ((node, change) for change in _of_call(node))
        yield from _numbers([*node.args, *(k.value for k in node.keywords if k.arg not in IDLE)], "argument off by one")
    if isinstance(node, ast.Subscript):
        yield from _numbers(_parts(node.slice), "index off by one")
    if isinstance(node, ast.expr):
        yield from ((node, change) for change in _of_expression(node))
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.keyword) or child.arg not in IDLE:
            yield from _changes(child)


def _is_check(node: ast.AST) -> bool:
    """`if …: raise …`: an argument check, which only ever refuses."""
    return isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise) and not node.orelse


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _of_expression(node: ast.expr) -> Iterator[Change]:
    match node:
        case ast.BinOp(left, ast.Add() | ast.Sub() as operator, right):
            kind = "+ made -" if isinstance(operator, ast.Add) else "- made +"
            yield kind, ast.BinOp(left, SWAPPED[type(operator)], right)
            yield "term dropped", left
            yield "term dropped", right if isinstance(operator, ast.Add) else ast.UnaryOp(ast.USub(), right)
        case ast.BinOp(left, ast.Mult(), right):
            yield "factor dropped", left
            yield "factor dropped", right
        case ast.BinOp(left, ast.Div(), right):
            yield "divisor dropped", left
        case ast.Compare(left, [operator], [right]) if type(operator) in COMPARED:
            yield "comparison", ast.Compare(left, [COMPARED[type(operator)]], [right])
        case ast.UnaryOp(ast.USub(), operand) if not isinstance(operand, ast.Constant):
            yield "sign lost", operand


def _of_call(node: ast.Call) -> Iterator[Change]:
    """A call left out: what it is given stands in its place."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name == "where" and len(node.args) == 3:
        yield "mask dropped", node.args[1]
    elif name.lstrip("_") in FUNCTIONS and len(node.args) == 1:
        yield "function left out", node.args[0]
    elif isinstance(node.func, ast.Attribute) and name in METHODS:
        owner = node.func.value
        if isinstance(owner, ast.Name) and owner.id in ("tl", "torch", "F"):
            if node.args:
                yield "call left out", node.args[0]
        else:
            yield "call left out", owner
    for keyword in node.keywords:
        if keyword.arg in IDLE or not isinstance(keyword.value, ast.Constant):
            continue
        if isinstance(keyword.value.value, bool):
            changed = copy.deepcopy(node)
            for other in changed.keywords:
                if other.arg == keyword.arg:
                    other.value = ast.Constant(not keyword.value.value)
            yield "flag turned round", changed


def _parts(index: ast.expr) -> list[ast.expr]:
    """What an index consists of, slices taken apart."""
    if isinstance(index, ast.Tuple):
        return [part for element in index.elts for part in _parts(element)]
    if isinstance(index, ast.Slice):
        return [part for part in (index.lower, index.upper, index.step) if part is not None]
    return [index]


def _numbers(nodes: list[ast.expr], kind: str) -> Iterator[tuple[ast.expr, Change]]:
    """Whole numbers one further from 0: another axis, the next row."""
    for node in nodes:
        match node:
            case ast.Constant(int(value)) if not isinstance(value, bool):
                yield node, (kind, ast.Constant(value + 1))
            case ast.UnaryOp(ast.USub(), ast.Constant(int(value))):
                yield node, (kind, ast.UnaryOp(ast.USub(), ast.Constant(value + 1)))
