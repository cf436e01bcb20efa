"""The mathematics in the header of an emitted module: one step, all tokens at once, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterable

from ..operations import Add, Count, Leaf, Rows
from ..program import Node, Program, topological
from ..recurrence import Recurrence
from .layout import Equation, terms, text_rows
from .nodes import Writer, shared_names
from .notation import style_named
from .step import Recurrent

WIDTH = 90


def module_equations(rec: Recurrence, program: Program) -> list[str]:
    """Lines for the docstring of an emitted module: at most 90 characters each, no trailing blanks."""
    w = Recurrent(rec, style_named("text"))
    nodes = program.nodes()
    decay = "; ℓ is log_decay" if rec.log_decays else ""
    counts = "; #{…} counts rows" if any(isinstance(n.op, Count) for n in nodes) else ""
    vector = all("m" not in rule.axes for rule in rec.states)
    where = "One step of a channel c (token t" if vector else "One step of a head (token t, feature m, value channel c"
    if program.total:
        return _total(w, program)
    levels = ["s = 1, 2, 4, … up to half a chunk; B_s(t) is the block of s rows that holds t:"]
    return [
        f"{where}{decay}):",
        *_indented([*w.maxima(), *w.quantities(), *w.updates(), *w.reading(), *w.output()]),
        "All tokens at once, from an empty state:",
        *_indented([w.mask(), *w.parallel()]),
        *(
            _scanned(w, program)
            if rec.scans
            else [
                f"Chunk by chunk (rows t and columns i of one chunk{counts}):",
                *(levels if any("s" in n.axes for n in nodes) else []),
                *_indented(chunk_equations(program)),
            ]
        ),
    ]


def _total(w: Recurrent, program: Program) -> list[str]:
    """What every token reads is a sum over all of them."""
    return [
        "A head (tokens t and i, feature m, value channel c):",
        *_indented([*w.quantities(), *w.totals(), *w.reading(in_place=True), *w.output()]),
        "All pairs of tokens at once:",
        *_indented(w.parallel()),
        "Chunk by chunk (rows t of one chunk), all of them before any token reads:",
        *_indented(chunk_equations(program)),
    ]


def _scanned(w: Recurrent, program: Program) -> list[str]:
    """How a scan splits time: the tokens of a chunk in turn, and what a chunk as a whole does to the state."""
    parts = _composed(w)
    names = " and ".join(f"{rule.name}_alone" for rule in w.rec.states)
    verb = "is" if len(w.rec.states) == 1 else "are"
    return [
        "Chunk by chunk (tokens t of one chunk, one after the other):",
        *_indented(chunk_equations(program)),
        f"What a chunk does to the state it is given, where {names} {verb} what its tokens leave of an empty one:",
        *_indented(parts),
    ]


def _composed(w: Recurrent) -> list[Equation]:
    """What the tokens of a chunk or segment together do to each state, from what they leave of an empty one."""
    style, found = w.style, []
    for rule in w.rec.states:
        start, alone = w.state(rule, ""), style.indexed(f"{rule.name}_alone", w.letters(rule.axes))
        logs = [style.summed("t", w.quantity(q)) for q in w.rec.log_decays]
        kept = style.product([style.exp(style.total(logs)), start]) if logs else start
        found.append(Equation(str(start), style.arrow, terms(style, [kept, alone])))
    return found


def hand_over_equation(rec: Recurrence) -> str:
    """How a state becomes that of the next segment of time, from what the segment leaves of an empty one."""
    return _composed(Recurrent(rec, style_named("text")))[0].line()


def chunk_equations(program: Program) -> list[Equation]:
    """The sums that join a chunk's own part and the carried part, and how the state is handed on.

    What these name is defined in inputs of the chunk, in one line each; what does not fit in a line keeps its parts'
    names, and these are defined in turn.
    """
    names = shared_names(program.nodes())
    sums = {n for n in program.nodes() if isinstance(n.op, Add) and n.name and _joins(n, program)}
    ends = [n for c in program.carries for n in c.hand_over]
    shown = set(sums)
    for n in [*sums, *ends]:
        shown |= set(_nearest([n] if n in ends else n.args))
    while True:
        writer = _inlining(program, names, shown)
        lines = {n: writer.equation(n) for n in shown}
        column = max((len(e.left) for e in lines.values()), default=0)
        long = [n for n in shown - sums if any(len(row) > WIDTH for row in _indented([lines[n].padded(column)]))]
        more = {m for n in long for m in _nearest(n.args)} - shown
        if not more:
            break
        shown |= more
    return [*(lines[n] for n in program.nodes() if n in shown), *(writer.handed_on(c) for c in program.carries)]


def _joins(n: Node, program: Program) -> bool:
    starts = {c.start for c in program.carries}
    reads = [bool(starts & set(topological([a]))) for a in n.args]
    return any(reads) and not all(reads)


def _derived(n: Node) -> bool:
    """Whether a node is derived inside the chunk, from what the tokens bring."""
    return n.level == "chunk" and not isinstance(n.op, Leaf | Rows)


def _nearest(nodes: Iterable[Node]) -> list[Node]:
    """The first named nodes at or below, of those derived inside the chunk."""
    found: list[Node] = []
    for n in nodes:
        if _derived(n):
            found += [n] if n.name else _nearest(n.args)
    return found


def _inlining(program: Program, names: dict[Node, str], shown: set[Node]) -> Writer:
    """A writer that writes out every derived node except those shown."""
    return Writer(style_named("text"), {**names, **{n: "" for n in program.nodes() if _derived(n) and n not in shown}})


def _indented(equations: list[Equation]) -> list[str]:
    return [f"    {row}".rstrip() for row in text_rows(equations, WIDTH - 4)]
