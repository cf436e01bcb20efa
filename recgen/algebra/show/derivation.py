"""What follows from a recurrence, as a page: unrolled sum, update, chunk split, adjoint, bounds, proof."""

from __future__ import annotations

from collections.abc import Iterable

import sympy

from ..calculus import derivative
from ..operations import Count
from ..program import Carry, Program
from ..recurrence import Quantity, Recurrence
from ..widths import is_wide
from .document import Block, Document, Equations, Matrix, Prose, Section, Verbatim, equations
from .expressions import written
from .formulas import free
from .layout import Equation, terms
from .nodes import Writer, shared_names
from .notation import Piece, Style, style_named
from .parts import ADDED, HANDED_BACK, HANDED_ON, TOGETHER, Origin, Part, backward_parts, forward_parts
from .step import Recurrent
from .unroll import TOKENS, Unrolled, gated, unroll

FACTORISATIONS = {
    "plain": "The decay varies inside the head, and its bounds keep the exponents of a whole chunk small: the weight of"
    " a pair is {to_row} at its row times {from_row} at its column, one matrix product.",
    "tree": "The decay varies inside the head and may be so strong that {from_row} overflows. Instead, two rows"
    " {before} part at exactly one level {level} of a tree of halves: there {i} lies in the lower and {t} in"
    " the upper half of one block, and their weight is the decay from {i} to the middle times the decay from"
    " the middle to {t}. Both are at most 1. One matrix product per level; {same} has weight 1.",
    "scan": "No matrix product sums over pairs of tokens here: the tokens of a chunk follow each other. All chunks run"
    " at once, first from an empty state, then from the one that is handed over: the decay of a whole chunk"
    " times the state before it, and what the chunk leaves of an empty state.",
}
NO_DECAY = "There is no decay: every pair {causal} weighs 1, and the mask alone remains."
NO_MASK = "There is no decay and no mask: every pair {pair} weighs 1."
PER_HEAD = (
    "The decay is one number per head, so the weights of all pairs form a matrix over {pair}, taken from sums"
    " over the tokens in between. No exponent is positive, and none comes from subtracting two long sums."
)


def derivation(
    rec: Recurrence,
    program: Program,
    adjoint: Program,
    bounds: object,
    factorisation: object,
    proof: object | None,
    style: str = "text",
) -> Document:
    """The page of a derivation, in one style. Arguments as in `explain_derivation`."""
    spelled = style_named(style)
    write = Recurrent(rec, spelled)
    writer = Writer(spelled, shared_names([*program.nodes(), *adjoint.nodes()]))
    beginning = (_one_step(write), _unrolled(write), _update(write)) if rec.causal else _all_tokens(write)
    return Document(
        (
            *beginning,
            *_chunk(program, writer),
            *_adjoint(adjoint, program, writer),
            *_slopes(write),
            _bounds(rec, spelled, bounds, factorisation),
            _proof(proof),
        )
    )


def explain_derivation(
    rec: Recurrence,
    program: Program,
    adjoint: Program,
    bounds: object,
    factorisation: object,
    proof: object | None = None,
    latex: bool = False,
) -> str:
    """Everything that the derive stage found, for a person to read and check by hand.

    bounds: the log-decay's interval, anything that prints as one; None without decay. factorisation: its name, "plain"
    or "tree". proof: anything that prints as the proof's outcome; None when none was made.
    """
    style = "latex" if latex else "text"
    return derivation(rec, program, adjoint, bounds, factorisation, proof, style).printed(latex)


def _legend(w: Recurrent) -> Prose:
    m = w.style.inline
    return Prose(f"One head, token {m('t')}, features {m('m')}, value channels {m('c')}.")


def _all_tokens(w: Recurrent) -> tuple[Section, ...]:
    """Where every token reads what all write: the sum and its readers, and the same over pairs."""
    summed = equations(w.totals() + w.reading(in_place=True) + w.output())
    words = Prose("The sums over features and tokens exchanged, for all tokens at once:")
    return (
        Section("Sum and read", (_legend(w), *equations(w.quantities()), *summed)),
        Section("All pairs", (words, *equations(w.parallel() + w.output()))),
    )


def _one_step(w: Recurrent) -> Section:
    return Section(
        "One step",
        (
            _legend(w),
            *equations(w.maxima() + w.quantities() + w.decay_value()),
            *equations(w.updates() + w.reading() + w.output()),
        ),
    )


def _unrolled(w: Recurrent) -> Section:
    found = unroll(w.rec, w.rec.states[0])
    m, entry = w.style.inline, str(w.mask_entry())
    left_out = {"": "", "v": f"{m('c')}, the index of the channel", "m": f"{m('m')}, the index of the feature"}.get(
        w.rec.structure, f"{m('m')} and {m('c')}, the indices of feature and channel"
    )
    each = f" It has the same form for every {left_out} being left out." if left_out else ""
    carried = ", ".join(m(_entry(w, found, e)) for e in found.carried)
    blocks: list[Block] = [
        Prose(
            f"Applying the step {TOKENS} times to symbols and collecting what multiplies the write of token {m('i')}"
            f" in the state after token {m('t')} gives the mask {m(entry)}, {m('t')} downwards and {m('i')} across."
            f"{each}"
        ),
        Matrix(w.style.symbol("M"), tuple(tuple(_entry(w, found, e) for e in row) for row in found.mask)),
        *_numbers(w, found),
        Prose(f"The initial state has the weights {carried}. In general:"),
        *equations([w.mask(), *w.summed_states()]),
        Prose("From an empty state, all tokens at once:"),
        *equations(w.parallel() + w.output()),
    ]
    return Section("Unrolled sum and mask", tuple(blocks))


def _entry(w: Recurrent, found: Unrolled, e: sympy.Expr) -> str:
    """An entry with the symbols of numbered tokens; what is constant in time keeps its name."""

    def spell(s: sympy.Symbol) -> Piece:
        return w.style.numbered(*found.numbered[s]) if s in found.numbered else w.style.indexed(s.name, ())

    return str(written(e, w.style, spell))


def _numbers(w: Recurrent, found: Unrolled) -> list[Block]:
    """The mask of the first head as numbers, where the decay depends on nothing but the head."""
    q = w.rec.quantities.get("log_decay")
    if q is None or any(s.name != "h" for s in q.expr.free_symbols):
        return []
    first = q.expr.xreplace({s: sympy.Integer(0) for s in q.expr.free_symbols})
    rows = tuple(tuple(f"{float(e.xreplace({q.symbol: first})):.5g}" for e in row) for row in found.mask)
    where = f"In numbers, for the head {w.style.inline('h = 0')}:" if q.expr.free_symbols else "In numbers:"
    return [Prose(where), Matrix(w.style.symbol("M"), rows)]


def _update(w: Recurrent) -> Section:
    names = [w.style.inline(str(w.state(rule, ""))) for rule in w.rec.states]
    names += [w.style.inline(w.style.symbol("maximum"))] if w.rec.stabiliser else []
    kept = " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
    words = Prose(f"Token by token, all that is kept is {kept}, whatever the length of the sequence.")
    return Section("Recurrent update", (words, *equations(w.in_place() + w.output())))


def _chunk(program: Program, writer: Writer) -> list[Section]:
    m = writer.style.inline
    starts = " and ".join(m(writer.style.symbol(c.name)) for c in program.carries)
    if not any({"t", "i"} & set(n.axes) for n in program.nodes() if n.level == "chunk"):
        legend = Prose(f"A chunk is one token {m('t')} here. {starts} {_are(program)} the state before it.")
    elif program.total:
        legend = Prose(
            f"Rows {m('t')} run over the tokens of one chunk. {starts} {_are(program)} what all chunks of"
            " the sequence write, summed before the first chunk reads."
        )
    else:
        legend = Prose(
            f"Rows {m('t')} and columns {m('i')} run over the tokens of one chunk."
            f" {starts} {_are(program)} the state at the start of the chunk, handed on by the chunk before."
            " Where a condition fails, the value is 0."
        )
    sections = [Section("Chunk split", (legend, *_signs(program, writer.style)))]
    origin = Origin.of(program)
    for part in forward_parts(program, writer):
        more = _outputs(program, writer) if part.title == TOGETHER else []
        sections.append(_part(part, origin, writer, more))
    return _ending(sections, ADDED if program.total else HANDED_ON, program.carries, writer)


def _adjoint(adjoint: Program, program: Program, writer: Writer) -> list[Section]:
    m = writer.style.inline
    ends = " and ".join(m(writer.style.symbol(c.start.name)) for c in adjoint.carries)
    handed = (
        "the gradient of the state at the end of the chunk, handed on by the chunk after. What is left before the"
        " first chunk is the gradient of the initial state."
    )
    if adjoint.total:
        handed = "the gradient of what is summed: what all chunks of the sequence send back, and what every write gets."
    legend = Prose(
        f"Every operation is transposed, in reverse order; {m(writer.style.symbol('d_x'))} is the gradient"
        f" of {m('x')}. {ends} {_are(adjoint)} {handed}"
    )
    origin = Origin.of(adjoint, program)
    parts = backward_parts(adjoint, program, writer)
    sections = [Section("Adjoint", (legend,)), *(_part(p, origin, writer, []) for p in parts)]
    return _ending(sections, ADDED if adjoint.total else HANDED_BACK, adjoint.carries, writer)


def _are(program: Program) -> str:
    return "is" if len(program.carries) == 1 else "are"


def _part(part: Part, origin: Origin, writer: Writer, more: list[Equation]) -> Section:
    return Section(part.title, equations([*(origin.equation(n, writer) for n in part.nodes), *more]), 3)


def _ending(sections: list[Section], title: str, carries: Iterable[Carry], writer: Writer) -> list[Section]:
    """The sections, the last one being how the carried values are handed on."""
    handed_on = [writer.handed_on(c) for c in carries]
    if sections[-1].title != title:
        return [*sections, Section(title, equations(handed_on), 3)]
    before = sections[-1].blocks[0]
    assert isinstance(before, Equations)
    return [*sections[:-1], Section(title, equations([*before.equations, *handed_on]), 3)]


def _outputs(program: Program, writer: Writer) -> list[Equation]:
    """The outputs that are another name for what they are read from."""
    found = []
    for name, node in program.outputs.items():
        scope = free(node)
        left, right = writer.style.indexed(name, [scope[a] for a in node.axes]), writer.refer(node, scope)
        if str(left) != str(right):
            found.append(Equation(str(left), "=", terms(writer.style, [right])))
    return found


def _signs(program: Program, style: Style) -> list[Block]:
    """What the program's own signs mean, as far as it uses them."""
    m, nodes = style.inline, program.nodes()
    said = []
    if any(isinstance(n.op, Count) for n in nodes):
        condition = m(style.relation("j <= t"))
        said.append(f"{m(str(style.count('j <= t')))} counts the tokens {m('j')} of the chunk with {condition}.")
    if any("s" in n.axes for n in nodes):
        said.append(
            f"{m(style.block('t', 's'))} is the block of {m('s')} rows that {m('t')} lies in, {m('s')} = 1, 2,"
            " 4, … up to half a chunk; two blocks that make up a block of twice the size are siblings."
        )
    return [Prose(words) for words in said]


def _slopes(w: Recurrent) -> list[Section]:
    """Derivatives of the expressions that the spec itself brought."""
    found = [_slope(w.style, q.name, q.expr, s) for q in w.rec.quantities.values() for s in _variables(w.rec, q)]
    if not w.direct:
        found += [_slope(w.style, "o", w.rec.output, s) for s in sorted(w.rec.output.free_symbols, key=str)]
    return [Section("Derivatives of the spec's own expressions", equations(found))] if found else []


def _variables(rec: Recurrence, q: Quantity) -> list[sympy.Symbol]:
    if q.expr.is_Symbol or is_wide(q.expr):
        return []
    return sorted((s for s in q.expr.free_symbols if s.name in rec.tensors and s.is_integer is None), key=str)


def _slope(style: Style, name: str, expr: sympy.Expr, s: sympy.Symbol) -> Equation:
    left = style.slope(style.symbol(name), style.symbol(s.name))
    return Equation(left, "=", terms(style, [written(derivative(expr, s), style)]))


def _bounds(rec: Recurrence, style: Style, bounds: object, factorisation: object) -> Section:
    said: list[str] = [NO_DECAY if rec.causal else NO_MASK]
    if rec.log_decays:
        time = "one per token" if any(gated(rec, q.name) for q in rec.log_decays) else "constant in time"
        interval = str(bounds).replace("inf", style.infinity)
        inside = style.inline(f"{style.symbol('log_decay')} {style.relation('in')} {interval}")
        reason = FACTORISATIONS.get(str(factorisation), str(factorisation)) if rec.structure else PER_HEAD
        said = [f"{inside}, {time}: found by interval analysis of its expression.", reason]
    signs = {name: style.inline(text) for name, text in _formulas(style).items()}
    return Section("Bounds and factorisation", tuple(Prose(words.format(**signs)) for words in said))


def _formulas(style: Style) -> dict[str, str]:
    """The formulas that the prose on factorisations speaks of."""
    prefix = style.indexed("prefix", ())
    return {
        "to_row": str(style.exp(prefix)),
        "from_row": str(style.exp(style.minus(prefix))),
        "pair": "(t, i)",
        "t": "t",
        "i": "i",
        "level": "s",
        "same": "i = t",
        "before": "i < t",
        "causal": style.relation("i <= t"),
    }


def _proof(proof: object | None) -> Section:
    if proof is None:
        return Section("Proof", (Prose("No proof was made."),))
    return Section("Proof", (Verbatim(tuple(str(proof).splitlines())),))
