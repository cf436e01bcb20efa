"""The definition's text: token values and the one-step recurrence, printed straight from the recurrence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sympy

from recgen.algebra.chunkwise import token_value
from recgen.algebra.graph import Graph
from recgen.algebra.mathtext import step_equations
from recgen.algebra.program import Node
from recgen.algebra.recurrence import Recurrence, StateRule, steady_update
from recgen.plan.order import Compute, statements

from .naming import Names
from .notes import Note
from .torch_expr import TorchPrinter
from .torch_program import TorchText, is_scalar

Known = dict[sympy.Symbol, tuple[str, str | None]]  # symbol → its variable, and its axes: None for a plain number


@dataclass(frozen=True)
class Reference:
    """Lines and names of the functions `_token_values`, `_token_step` and `_naive`.

    Where every token reads the total, the step comes in two: `write_lines` and `read_lines`, of the quantities at the
    positions `written` and `read` of `variables`.
    """

    token_lines: list[str]
    variables: list[str]  # one per value, in order; quantities that are the same value share one
    in_time: list[bool]  # whether the value varies in time
    step_lines: list[str]
    nodes: list[Node]
    write_lines: list[str]
    read_lines: list[str]
    written: list[int]
    read: list[int]
    empty: str  # the output of no tokens


def reference(rec: Recurrence, first: str, note: Note) -> Reference:
    graph = Graph()
    nodes = {q.name: token_value(graph, q, rec, name=q.name) for q in rec.quantities.values()}
    lines, names = value_lines(graph, list(nodes.values()), first, note)
    values = list(dict.fromkeys(nodes.values()))
    variables = [names[n] for n in values]
    in_time = [n.level == "token" for n in values]
    symbols = {
        q.symbol: (names[nodes[name]], None if is_scalar(nodes[name]) else q.axes) for name, q in rec.quantities.items()
    }
    said = step_equations(rec)
    steps = [_rule_lines(rule, rec, symbols, note, said) for rule in rec.states]
    output = [note.mark(line, said["o"]) for line in _output_line(rec, symbols)]
    written = {s for rule in rec.states for s in rule.update.free_symbols}
    read = rec.output.free_symbols | {s for rule in rec.states for s in rule.read.free_symbols}

    def positions(symbols: set[sympy.Symbol]) -> list[int]:
        used = {nodes[q.name] for q in rec.quantities.values() if q.symbol in symbols}
        return [k for k, n in enumerate(values) if n in used]

    return Reference(
        lines,
        variables,
        in_time,
        [
            line
            for rule, (update, reads) in zip(rec.states, steps, strict=True)
            for line in ([reads[0], update, *reads[1:]] if rule.before else [update, *reads])
        ]
        + output,
        values,
        [update for update, _ in steps],
        [line for _, reads in steps for line in reads] + output,
        positions(written),
        positions(read),
        _no_output(nodes["value"], names, first),
    )


def _no_output(value: Node, names: Names, first: str) -> str:
    if value.level == "token":
        return f"{names[value]}[:, :0]"
    return f"{first}.new_empty(len({first}), 0, *{names[value]}.shape)"


def value_lines(graph: Graph, nodes: list[Node], first: str, note: Note) -> tuple[list[str], Names]:
    """Statements for token values, and the variables that hold them. `first`: a tensor whose dtype new tensors take."""
    names = Names(graph, nodes, taken=("scale",))
    text = TorchText(names, first)
    found = [s.node for s in statements(nodes) if isinstance(s, Compute) and s.node in names]
    return [note.mark(f"{names[n]} = {text.value(n)}", n) for n in found], names


def _rule_lines(
    rule: StateRule, rec: Recurrence, symbols: Known, note: Note, said: Mapping[str, str]
) -> tuple[str, list[str]]:
    """The update of a state, and what reads it."""
    known = {**symbols, rule.symbol: (rule.name, rule.axes)}
    name = read_variable(rec, rule)
    read = [f"{name} = {_summed(rule.read, known, rule.axes)}"]
    if rule.own != 0:
        read.append(f"{name} = {name} + {_own(rule, rec, known)}")
    update = f"{rule.name} = {_text(steady_update(rule), known, rule.axes)}"
    return note.mark(update, said[rule.name]), [note.mark(line, said[rule.read_name]) for line in read]


def _output_line(rec: Recurrence, symbols: Known) -> list[str]:
    """The output in what was read; nothing where it is a read as it stands."""
    reads = {
        sympy.Symbol(rule.read_name, real=True): (read_variable(rec, rule), rule.axes.replace("m", ""))
        for rule in rec.states
    }
    if "o" in {name for name, _ in reads.values()}:
        return []
    return [f"o = {_text(rec.output, {**symbols, **reads}, 'v')}"]


def _summed(expr: sympy.Expr, known: Known, axes: str) -> str:
    text = _text(expr, known, axes)
    return f"({text}).sum({axes.index('m') - len(axes)})" if "m" in axes else text


def _own(rule: StateRule, rec: Recurrence, known: Known) -> str:
    """The sum over the features first, then what varies along the values alone, where the factors allow it."""
    if not splits(rule, rec):
        return _summed(rule.own, known, rule.axes)
    inner, outer = own_factors(rule.own, rec)
    total = _summed(inner, known, "m")
    if "v" not in rule.axes:
        return total
    return f"{total}[..., None] * {_text(outer, known, 'v')}"


def splits(rule: StateRule, rec: Recurrence) -> bool:
    """Whether the token's own share is a sum over the features of some factors, times the others."""
    along_both = any(q.axes == "mv" and q.symbol in rule.own.free_symbols for q in rec.quantities.values())
    return "m" in rule.axes and not along_both


def own_factors(own: sympy.Expr, rec: Recurrence) -> tuple[sympy.Expr, sympy.Expr]:
    """The factors of a token's own share that are summed over the features, and those along the values."""
    along = {q.symbol for q in rec.quantities.values() if "v" in q.axes}
    factors = sympy.Mul.make_args(own)
    return (sympy.Mul(*(f for f in factors if f not in along)), sympy.Mul(*(f for f in factors if f in along)))


def read_variable(rec: Recurrence, rule: StateRule) -> str:
    """The variable a read becomes: the output itself where nothing is done to it."""
    return "o" if rec.output == sympy.Symbol(rule.read_name, real=True) else rule.read_name


def _text(expr: sympy.Expr, names: Known, axes: str) -> str:
    """An expression of quantities, each broadcast over the axes it does not vary along."""

    def aligned(name: str, own: str | None) -> str:
        return name if own in (axes, None) else f"{name}[..., {', '.join(':' if a in own else 'None' for a in axes)}]"

    numbers = {s for s, (_, own) in names.items() if own is None}
    return TorchPrinter({s: aligned(*v) for s, v in names.items()}, numbers).text(expr)
