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

Where every token reads every other, nothing decays and there are no pairs to weigh: a chunk reads the sum of all writes
of the sequence ("total").
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import sympy

from recgen.spec.model import PAIR

from .features import feature_value
from .graph import Graph
from .program import Carry, Node, Program
from .recurrence import AXIS as WITHIN_HEAD
from .recurrence import Quantity, Recurrence, affine, linear_read
from .stabiliser import TRACKS
from .widths import POSITION, changes_width, is_wide

AXIS = {"T": "t", **WITHIN_HEAD}
REPEATED = ("query", "key", "value", "query_size", "key_size")
"""What meets token by token, also where it is the same at every token."""


@dataclass(frozen=True)
class Decay:
    """The log-decay of a chunk's rows, and the sums of it that the program uses.

    `logs` are its parts, each along axes of its own: rows (t, …) if gated, (…) if constant in time; none for no decay.
    Where `before` holds, a row reads the state before its own update, so that its own decay does not count.
    """

    graph: Graph
    logs: tuple[Node, ...]
    before: bool

    @property
    def structure(self) -> set[str]:
        return {a for n in self.logs for a in n.axes} & {"m", "v"}

    def through(self) -> list[Node]:
        """From the start of the chunk to row t, including t unless reads come before."""
        return [self._through(n, "chunk", "prefix") for n in self.logs]

    def from_middle(self) -> list[Node]:
        """The same from the start of the block of the tree's current level."""
        return [self._through(n, "level", "from_middle") for n in self.logs]

    def _through(self, log: Node, block: str, name: str) -> Node:
        if log.level == "head":
            return self.graph.mul(log, self.graph.count("earlier" if self.before else "through", block), name=name)
        earlier = self.graph.segment(log, "earlier", block, name=name if self.before else "")
        return earlier if self.before else self.graph.add(log, earlier, name=name)

    def later(self, block: str = "chunk", name: str = "suffix") -> list[Node]:
        """From row t, excluding t, to the end of the block."""
        return [
            self.graph.mul(log, self.graph.count("later", block), name=name)
            if log.level == "head"
            else self.graph.segment(log, "later", block, name=name)
            for log in self.logs
        ]

    def total(self) -> list[Node]:
        return [
            self.graph.mul(log, self.graph.count("total", "chunk"), name="total")
            if log.level == "head"
            else self.graph.reduce(log, "t", name="total")
            for log in self.logs
        ]

    def between(self) -> Node:
        """Between two rows, for a decay of the whole head."""
        (log,) = self.logs
        if log.level == "head":
            kind = "inside" if self.before else "between"
            return self.graph.mul(log, self.graph.count(kind, "chunk"), name="between")
        return self.graph.between(log, self.before, name="between")

    def pairs(self, factorisation: str) -> Iterable[Pair]:
        """The pair weight as a sum of products of row factors, column factors and a mask."""
        g = self.graph
        causal = "strict" if self.before else "causal"
        if factorisation == "total":
            return
        if not self.logs:
            yield Pair((), (), None, causal)
        elif not self.structure:
            yield Pair((), (), g.exp(self.between(), name="pair_decay"), causal)
        elif factorisation == "plain":
            rows = self.exp(self.through(), "decay_to_row")
            # the row's own decay does not count, so the growth from a column takes the whole of its own
            columns = (g.neg(n) for n in replace(self, before=False).through())
            yield Pair(rows, self.exp(columns, "growth_from_row"), None, causal)
        else:
            rows = self.exp(self.from_middle(), "decay_from_middle")
            yield Pair(rows, self.exp(self.later("level", "to_middle"), "decay_to_middle"), None, "siblings")
            if not self.before:
                yield Pair((), (), None, "diagonal")

    def exp(self, sums: Iterable[Node], name: str) -> tuple[Node, ...]:
        return tuple(self.graph.exp(n, name=name) for n in sums)


@dataclass(frozen=True)
class Pair:
    """One term of the pair weight: row factors · column factors · weight on (t, i), kept where the mask says."""

    rows: tuple[Node, ...]
    columns: tuple[Node, ...]
    weight: Node | None
    mask: str


def chunk_program(rec: Recurrence, factorisation: str) -> Program:
    """The program of one chunk. factorisation: "plain" or "tree", for decays that vary inside a head, or "total"."""
    g = Graph()
    rows = _rows(g, rec)
    reads: dict[sympy.Symbol, Node] = {}
    carries = []
    for rule in rec.states:
        step = affine(rule)
        decay = Decay(g, tuple(rows[s] for s in sympy.Add.make_args(step.log_decay) if s != 0), rule.before)
        write = [rows[f] for f in step.write]
        read = [rows[f] for f in linear_read(rule)]
        own = [rows[f] for f in sympy.Mul.make_args(rule.own) if rule.own != 0]
        start = g.leaf(rule.name, "carry", rule.axes, "chunk")
        inside = [_pair_term(g, read, write, pair, rule.axes) for pair in decay.pairs(factorisation)]
        inside += [own_term(g, own, rule.axes)] if own else []
        carried = _carried_term(g, read, start, decay.exp(decay.through(), "decay_to_row"))
        reads[sympy.Symbol(rule.read_name, real=True)] = g.label(g.add(*inside, carried), rule.read_name)
        total = g.exp(g.add(*decay.total()), name="chunk_decay") if decay.logs else None
        write_end = _write_term(g, write, decay.exp(decay.later(), "decay_to_end"), rule.axes)
        carries.append(Carry(rule.name, start, total, write_end))
    outputs = {"o": g.unrows(g.map(rec.output, {**rows, **reads}, name="o"))}
    return Program(outputs, tuple(carries), g, factorisation == "total")


def pair_program(rec: Recurrence) -> Program:
    """All pairs of tokens at once where every token reads every other: one chunk, with nothing carried and no mask."""
    g = Graph()
    rows = _rows(g, rec)
    reads: dict[sympy.Symbol, Node] = {}
    for rule in rec.states:
        read, write = ([rows[f] for f in factors] for factors in (linear_read(rule), affine(rule).write))
        reads[sympy.Symbol(rule.read_name, real=True)] = g.label(
            _pair_term(g, read, write, Pair((), (), None, "all"), rule.axes), rule.read_name
        )
    return Program({"o": g.unrows(g.map(rec.output, {**rows, **reads}, name="o"))}, (), g)


def _rows(g: Graph, rec: Recurrence) -> dict[sympy.Symbol, Node]:
    """The quantities of a chunk's rows, by their symbols; those of a head as they are."""
    values = {q.symbol: token_value(g, q, rec) for q in rec.quantities.values()}
    values = {s: repeated(g, s.name, n) for s, n in values.items()}
    return {s: n if n.level == "head" else g.rows(n, name=s.name) for s, n in values.items()}


def repeated(g: Graph, name: str, node: Node) -> Node:
    """A query, key or value that is the same at every token as one per token; other quantities as they are."""
    if name not in REPEATED or node.level != "head":
        return node
    return g.label(g.every_token(node), f"{name}_tokens")


def token_value(g: Graph, q: Quantity, rec: Recurrence, name: str = "") -> Node:
    """A quantity as a node of its inputs and parameters, before the sequence is cut."""
    tensors = rec.tensors
    wide = is_wide(q.expr)
    start = "k" if changes_width(q.expr) else "m"
    bindings = {}
    for s in sorted(q.expr.free_symbols - {PAIR, POSITION}, key=str):
        if s.name in tensors and s.is_integer is None:
            t = tensors[s.name]
            if sum(a in AXIS and a != "T" for a in t.axes) > 1 and wide:
                continue  # a matrix: it is no value of its own
            axes = [start if wide and a == "K" else AXIS[a] for a in t.axes if a in AXIS]
            kind, level = "input" if t.role == "input" else "param", "token" if "T" in t.axes else "head"
            bindings[s] = g.leaf(s.name, kind, axes, level)
        elif s in TRACKS:
            bindings[s] = g.leaf(s.name, "track", "t" + rec.tracks[s.name], "token")
        else:
            bindings[s] = g.leaf(s.name, "index" if s.name == "h" else "scalar", "", "head")
    if wide:
        features = feature_value(g, q.expr, bindings, tensors, start, q.name)
        return g.label(features, name or (q.name if q.decays else f"{q.name}_features"))
    inside_head = all(n.level == "head" for n in bindings.values())
    return g.map(q.expr, bindings, name=name or (q.name if inside_head and q.name not in REPEATED else ""))


def _along(axis: str, factors: Iterable[Node]) -> list[Node]:
    return [f for f in factors if axis in f.axes]


def _not_along(axis: str, factors: Iterable[Node]) -> list[Node]:
    return [f for f in factors if axis not in f.axes]


def _pair_term(g: Graph, read: list[Node], write: list[Node], pair: Pair, state: str) -> Node:
    """Σ_i Σ_m read_t write_i weight(t, i): everything the rows of a chunk take from its own writes."""
    if pair.mask == "diagonal":
        return own_term(g, [*read, *write], state)
    row_m, row_v, column_m, column_v = (_along(a, f) for f in (pair.rows, pair.columns) for a in "mv")
    left = g.mul(*_not_along("v", read), *row_m, name="query_weighted" if row_m else "")
    right = g.columns(g.mul(*_not_along("v", write), *column_m, name="key_weighted" if column_m else ""))
    scores = g.contract(left, right, "m", name="similarity")
    if pair.weight is not None:
        scores = g.mul(scores, pair.weight, name="weighted")
    scores = scores if pair.mask == "all" else g.mask(scores, pair.mask, name="scores")
    if "s" in scores.axes and not column_v:
        scores = g.reduce(scores, "s", name="scores_all")
    if "v" not in state:
        return g.reduce(scores, "i")
    value = g.mul(*_along("v", write), *column_v, name="value_weighted" if column_v else "")
    term = g.mul(g.contract(scores, g.columns(value), "i"), *row_v)
    return g.reduce(term, "s", name="pairs_all") if "s" in term.axes else term


def own_term(g: Graph, factors: Sequence[Node], state: str) -> Node:
    """What a row takes from its own token: summed over the features first, so far as its factors allow."""
    if "m" not in state:
        return g.mul(*factors)
    if any(set("mv") <= set(f.axes) for f in factors):
        return g.reduce(g.mul(*factors), "m")
    score = g.reduce(g.mul(*_not_along("v", factors)), "m", name="self_score")
    return g.mul(score, *_along("v", factors))


def _carried_term(g: Graph, read: list[Node], start: Node, through: Iterable[Node]) -> Node:
    """What the rows read from the state at the start of the chunk, decayed to the row."""
    on_query = _not_along("v", through)
    left = g.mul(*_not_along("v", read), *on_query, name="query_decayed" if on_query else "")
    return g.mul(g.contract(left, start, "m"), *_along("v", through))


def _write_term(g: Graph, write: list[Node], later: Iterable[Node], state: str) -> Node:
    """What the chunk adds to the state at its end: every write decayed from its row to the end."""
    on_key, on_value = _not_along("v", later), _along("v", later)
    key = g.mul(*_not_along("v", write), *on_key, name="key_decayed" if on_key else "")
    if "v" not in state:
        return g.reduce(key, "t")
    return g.contract(key, g.mul(*_along("v", write), *on_value, name="value_decayed" if on_value else ""), "t")
