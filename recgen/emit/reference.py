"""The definition's text: token values and the one-step recurrence, printed straight from the recurrence."""

from __future__ import annotations

from dataclasses import dataclass

import sympy

from recgen.algebra.chunkwise import token_value
from recgen.algebra.program import Graph, Node
from recgen.algebra.recurrence import Recurrence, StateRule, steady_update
from recgen.plan.order import Compute, statements

from .naming import Names
from .torch_expr import TorchPrinter
from .torch_program import TorchText


@dataclass(frozen=True)
class Reference:
    """Lines and names of the functions `_token_values`, `_token_step` and `_naive`."""

    token_lines: list[str]
    variables: list[str]  # one per quantity, in order
    in_time: list[bool]  # whether the quantity varies in time
    step_lines: list[str]
    nodes: list[Node]


def reference(rec: Recurrence, first: str) -> Reference:
    graph = Graph()
    nodes = {q.name: token_value(graph, q, rec.tensors, name=q.name) for q in rec.quantities.values()}
    names = Names(graph, nodes.values(), taken=("scale",))
    text = TorchText(names, first)
    lines = [
        f"{names[s.node]} = {text.value(s.node)}"
        for s in statements(nodes.values())
        if isinstance(s, Compute) and s.node in names
    ]
    variables = [names[n] for n in nodes.values()]
    in_time = [n.level == "token" for n in nodes.values()]
    symbols = {q.symbol: (names[nodes[q.name]], q.axes) for q in rec.quantities.values()}
    return Reference(lines, variables, in_time, _step_lines(rec, symbols), list(nodes.values()))


def _step_lines(rec: Recurrence, symbols: dict[sympy.Symbol, tuple[str, str]]) -> list[str]:
    lines = []
    reads: dict[sympy.Symbol, tuple[str, str]] = {}
    for rule in rec.states:
        known = {**symbols, rule.symbol: (rule.name, rule.axes)}
        lines.append(f"{rule.name} = {_text(steady_update(rule), known, rule.axes)}")
        rest = rule.axes.replace("m", "")
        name = read_variable(rec, rule)
        lines.append(f"{name} = ({_text(rule.read, known, rule.axes)}).sum({rule.axes.index('m') - len(rule.axes)})")
        reads[sympy.Symbol(rule.read_name, real=True)] = (name, rest)
    if "o" not in {name for name, _ in reads.values()}:
        lines.append(f"o = {_text(rec.output, reads, 'v')}")
    return lines


def read_variable(rec: Recurrence, rule: StateRule) -> str:
    """The variable a read becomes: the output itself where nothing is done to it."""
    return "o" if rec.output == sympy.Symbol(rule.read_name, real=True) else rule.read_name


def _text(expr: sympy.Expr, names: dict[sympy.Symbol, tuple[str, str]], axes: str) -> str:
    """An expression of quantities, each broadcast over the axes it does not vary along."""

    def aligned(name: str, own: str) -> str:
        return name if own == axes else f"{name}[..., {', '.join(':' if a in own else 'None' for a in axes)}]"

    return TorchPrinter({s: aligned(*v) for s, v in names.items()}).text(expr)
