"""From the one-step recurrence to the program of a chunk.

Unrolling the affine step from the start of the chunk gives

    S_t = e^{sum of ℓ through t} S_start + Σ_{i≤t} e^{sum of ℓ over i<j≤t} write_i

so an output reads the carried state decayed to its row, and every earlier write of the chunk decayed between the two
rows. The factors of reads and writes are sorted by the axes they vary along, which decides what is a matrix product.

How the pair weight e^{sum over i<j≤t} is represented depends on the decay alone:

    varies along no axis of the head   a matrix over (t, i), from masked sums
    varies along m or v, bounded       row factor e^{prefix} times column factor e^{−prefix}: one product, when the
                                       bounds keep the exponents small ("plain")
    varies along m or v, unbounded     the pair tree: i and t part at exactly one level, into the lower and the upper
                                       half of a block; there the weight is e^{sum from i to the middle} times
                                       e^{sum from the middle to t}, both at most 1 ("tree")
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import sympy

from recgen.spec.model import Tensor

from .program import Carry, Graph, Node, Program
from .recurrence import Quantity, Recurrence, affine, linear_read

AXIS = {"T": "t", "K": "m", "M": "m", "V": "v"}


@dataclass(frozen=True)
class Decay:
    """The log-decay of a chunk's rows, and the sums of it that the program uses."""

    graph: Graph
    log: Node | None  # rows (t, …) if gated, (…) if constant in time, None for no decay
    structure: str

    def through(self) -> Node | None:
        """From the start of the chunk to row t, including t."""
        return self._through("chunk", "prefix")

    def _through(self, block: str, name: str) -> Node | None:
        if self.log is None:
            return None
        if self.log.level == "head":
            return self.graph.mul(self.log, self.graph.count("through", block), name=name)
        return self.graph.add(self.log, self.graph.segment(self.log, "earlier", block), name=name)

    def later(self, block: str = "chunk", name: str = "suffix") -> Node | None:
        """From row t, excluding t, to the end of the block."""
        if self.log is None:
            return None
        if self.log.level == "head":
            return self.graph.mul(self.log, self.graph.count("later", block), name=name)
        return self.graph.segment(self.log, "later", block, name=name)

    def total(self) -> Node | None:
        if self.log is None:
            return None
        if self.log.level == "head":
            return self.graph.mul(self.log, self.graph.count("total", "chunk"), name="total")
        return self.graph.reduce(self.log, "t", name="total")

    def between(self) -> Node:
        if self.log.level == "head":
            return self.graph.mul(self.log, self.graph.count("between", "chunk"), name="between")
        return self.graph.between(self.log, name="between")

    def pairs(self, factorisation: str) -> Iterable[Pair]:
        """The pair weight as a sum of products of a row factor, a column factor and a mask."""
        g = self.graph
        if self.log is None:
            yield Pair(None, None, None, "causal")
        elif not self.structure:
            yield Pair(None, None, g.exp(self.between(), name="pair_decay"), "causal")
        elif factorisation == "plain":
            prefix = self.through()
            yield Pair(g.exp(prefix, name="decay_to_row"), g.exp(g.neg(prefix), name="growth_from_row"), None, "causal")
        else:
            row, column = self._through("level", "from_middle"), self.later("level", "to_middle")
            yield Pair(g.exp(row, name="decay_from_middle"), g.exp(column, name="decay_to_middle"), None, "siblings")
            yield Pair(None, None, None, "diagonal")


@dataclass(frozen=True)
class Pair:
    """One term of the pair weight: row factor · column factor · weight on (t, i), kept where the mask says."""

    row: Node | None
    column: Node | None
    weight: Node | None
    mask: str | None


def chunk_program(rec: Recurrence, factorisation: str) -> Program:
    """The program of one chunk. factorisation: "plain" or "tree", for decays that vary inside a head."""
    g = Graph()
    values = {q.symbol: token_value(g, q, rec.tensors) for q in rec.quantities.values()}
    rows = {s: n if n.level == "head" else g.rows(n, name=s.name) for s, n in values.items()}
    reads: dict[sympy.Symbol, Node] = {}
    carries = []
    for rule in rec.states:
        step = affine(rule)
        decay = Decay(g, _value(step.log_decay, rows), rec.structure)
        write = [rows[f] for f in step.write]
        read = [rows[f] for f in linear_read(rule)]
        start = g.leaf(rule.name, "carry", rule.axes, "chunk")
        through, later, total = (
            None if x is None else g.exp(x, name)
            for x, name in (
                (decay.through(), "decay_to_row"),
                (decay.later(), "decay_to_end"),
                (decay.total(), "chunk_decay"),
            )
        )
        inside = [_pair_term(g, read, write, pair, rule.axes) for pair in decay.pairs(factorisation)]
        carried = _carried_term(g, read, start, through, rule.axes)
        reads[sympy.Symbol(rule.read_name, real=True)] = g.add(*inside, carried, name=rule.read_name)
        carries.append(Carry(rule.name, start, total, _write_term(g, write, later, rule.axes)))
    return Program({"o": g.unrows(g.map(rec.output, reads, name="o"))}, tuple(carries), g)


def token_value(g: Graph, q: Quantity, tensors: Mapping[str, Tensor], name: str = "") -> Node:
    """A quantity as a node of its inputs and parameters, before the sequence is cut."""
    bindings = {}
    for s in sorted(q.expr.free_symbols, key=str):
        if s.name in tensors and s.is_integer is None:
            t = tensors[s.name]
            axes = [AXIS[a] for a in t.axes if a in AXIS]
            kind, level = "input" if t.role == "input" else "param", "token" if "T" in t.axes else "head"
            bindings[s] = g.leaf(s.name, kind, axes, level)
        else:
            bindings[s] = g.leaf(s.name, "index" if s.name == "h" else "scalar", "", "head")
    inside_head = all(n.level == "head" for n in bindings.values())
    return g.map(q.expr, bindings, name=name or (q.name if inside_head else ""))


def _value(expr: sympy.Expr, rows: dict[sympy.Symbol, Node]) -> Node | None:
    return None if expr == 0 else rows[expr]


def _along(axis: str, factors: list[Node]) -> list[Node]:
    return [f for f in factors if axis in f.axes]


def _pair_term(g: Graph, read: list[Node], write: list[Node], pair: Pair, state: str) -> Node:
    """Σ_i Σ_m read_t write_i weight(t, i): everything the rows of a chunk take from its own writes."""
    if pair.mask == "diagonal":
        at_m = g.mul(*_along("m", read), *_along("m", write))
        return (
            g.mul(g.reduce(at_m, "m", name="self_score"), *_along("v", write))
            if "v" in state
            else g.reduce(at_m, "m", name="self_score")
        )
    row_m, row_v = (pair.row if pair.row is not None and a in pair.row.axes else None for a in "mv")
    col_m, col_v = (pair.column if pair.column is not None and a in pair.column.axes else None for a in "mv")
    left = g.mul(*_along("m", read), row_m, name="query_weighted" if row_m else "")
    right = g.columns(g.mul(*_along("m", write), col_m, name="key_weighted" if col_m else ""))
    scores = g.contract(left, right, "m", name="similarity")
    if pair.weight is not None:
        scores = g.mul(scores, pair.weight, name="weighted")
    if pair.mask is not None:
        scores = g.mask(scores, pair.mask, name="scores")
    if "s" in scores.axes and col_v is None:
        scores = g.reduce(scores, "s", name="scores_all")
    if "v" not in state:
        return g.reduce(scores, "i")
    term = g.contract(scores, g.columns(g.mul(*_along("v", write), col_v)), "i")
    term = term if row_v is None else g.mul(term, row_v)
    return g.reduce(term, "s") if "s" in term.axes else term


def _carried_term(g: Graph, read: list[Node], start: Node, through: Node | None, state: str) -> Node:
    """What the rows read from the state at the start of the chunk, decayed to the row."""
    on_query = through is not None and (not through.axes or "v" not in through.axes)
    left = g.mul(*_along("m", read), through if on_query else None, name="query_decayed" if on_query else "")
    term = g.contract(left, start, "m")
    return term if on_query or through is None else g.mul(term, through)


def _write_term(g: Graph, write: list[Node], later: Node | None, state: str) -> Node:
    """What the chunk adds to the state at its end: every write decayed from its row to the end."""
    on_key = later is not None and "v" not in later.axes
    key = g.mul(*_along("m", write), later if on_key else None, name="key_decayed" if on_key else "")
    if "v" not in state:
        return g.reduce(key, "t")
    value = g.mul(*_along("v", write), None if on_key else later)
    return g.contract(key, value, "t")
