"""The page of a derivation with what its forms cost: the recurrence, what follows from it, and the numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import sympy

from recgen.algebra.derive import Derivation
from recgen.algebra.mathtext import derivation as derivation_page
from recgen.algebra.show.document import Block, Document, Prose, Section, Table
from recgen.algebra.show.expressions import written
from recgen.algebra.show.notation import Piece, Style, style_named
from recgen.plan.kernels import Plan
from recgen.spec.model import SIZES

from .costs import LENGTH, WIDTH, Costs, costs
from .count import ALL_LEVELS, LEVELS, C, T

SMALL = 0.02  # the share of a sum below which a term is left out
LOGARITHMS = {LEVELS: ("log₂ C", r"\log_{2} C"), ALL_LEVELS: ("log₂ T", r"\log_{2} T")}


def explained(found: Derivation, plan: Plan, style: str = "text") -> Document:
    """Everything that was derived, in one style; costs come before the proof."""
    page = derivation_page(
        found.recurrence, found.program, found.adjoint, found.bounds, found.factorisation, found.proof, style
    )
    *before, proof = page.sections
    return replace(page, sections=(*before, cost_section(costs(found, plan), style_named(style)), proof))


def cost_section(found: Costs, style: Style) -> Section:
    """What the forms cost, as formulas and in numbers."""
    m = style.inline
    words = (
        "Additions, multiplications and calls of functions per token and head, counted on the programs that the forms"
        f" are printed from. Masked products are counted whole; dots stand for small terms. {m('C')} is the number of"
        f" rows of a chunk, {m('T')} of all tokens{_features(found, style)}."
    )
    comma = "{,}" if style.name == "latex" else ","
    sizes = ", ".join(m(f"{names} = {size:,}".replace(",", comma)) for names, size in _sizes(found))
    numbers = (
        f"In numbers, for {sizes}, with what is in memory beside the {m(_formula(found, found.rows, style))} numbers of"
        " a token's inputs and output. For the chunkwise form it is what its kernels store for one another in the"
        " default schedule, as the plan says: at most so much, and one slice of what every tile stores. Its torch code"
        " takes one segment of time after the other, and keeps the values of one:"
    )
    forms = [
        (style.prose(f.name), *(_part(found, x, style) for x in (f.count.products, f.count.others)))
        for f in found.forms
    ]
    counted = [
        (
            style.prose(f.name),
            number(found.number(f.count.products + f.count.others)),
            number(found.number(f.kept)),
            f"{m(_formula(found, sympy.expand(f.kept), style))}: {style.prose(f.meaning)}",
        )
        for f in found.forms
    ]
    blocks: list[Block] = [
        Prose(words),
        Table((("form", "matrix products", "everything else"), *forms), titled=True),
        Prose(numbers),
        Table((("form", "operations", "kept", "which is, per token"), *counted), True),
    ]
    return Section("Costs", tuple(blocks))


def _features(found: Costs, style: Style) -> str:
    """What M is, where it is a width of its own."""
    if found.features is None:
        return ""
    width = str(written(found.features, style))
    return f", {style.inline('M' if width == 'M' else f'M = {width}')} that of the features"


def _sizes(found: Costs) -> list[tuple[str, int]]:
    everything = sum((f.count.products + f.count.others for f in found.forms), found.rows)
    if found.features is not None:
        everything = everything + found.features
    names = sorted(s.name for s in everything.free_symbols - {C, T, LEVELS, ALL_LEVELS})
    widths = [name for name in names if name != "M" or found.features == SIZES["M"]]
    return [(" = ".join(widths), WIDTH), ("C", found.chunk_size), ("T", LENGTH)]


def _part(found: Costs, expr: sympy.Expr, style: Style) -> str:
    return "–" if expr == 0 and style.name == "text" else style.inline(_formula(found, expr, style))


def _formula(found: Costs, expr: sympy.Expr, style: Style) -> str:
    """A sum, its largest terms first, without those that matter little."""
    whole = found.number(expr)
    terms = sorted(sympy.Add.make_args(expr), key=found.number, reverse=True)
    kept = [e for e in terms if whole == 0 or found.number(e) >= SMALL * whole]
    pieces = [written(e, style, _spelled(style, e.free_symbols)) for e in kept]
    rest = [Piece(r"\ldots" if style.name == "latex" else "…")] if len(kept) < len(terms) else []
    return str(style.total([*pieces, *rest]))


def _spelled(style: Style, symbols: Iterable[sympy.Symbol]) -> dict[sympy.Symbol, Piece]:
    return {
        s: Piece(LOGARITHMS[s][style.column], varies=True) if s in LOGARITHMS else style.indexed(s.name, ())
        for s in symbols
    }


def number(value: float) -> str:
    """A number rounded to three digits."""
    return f"{float(f'{value:.3g}'):,.0f}" if value >= 100 else f"{value:.3g}"
