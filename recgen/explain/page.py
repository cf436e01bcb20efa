"""Everything about one spec as a single HTML file: it needs no network, no script and no font."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

from markupsafe import Markup

import recgen
from recgen.algebra.derive import Derivation
from recgen.algebra.show.spec_page import spec_page
from recgen.page import environment
from recgen.page.formulas import parts
from recgen.plan.kernels import Plan

from .document import explained
from .pictures import chunk_picture, mask_picture, pair_kinds
from .sampled import masks

MASK = ("Unrolled sum and mask", "All pairs")
CHUNKS = "Chunk split"
FOLDED = {"Adjoint": "the transpose of every operation", "Derivatives of the spec's own expressions": "by sympy"}
DIVIDED = (
    "Where the product of a pair of tokens is taken; the lines are where chunks begin. Where nothing is drawn,"
    " token t does not read what token i wrote."
)
FACTORS = {
    "plain": ("1 product", "gives the weights of all pairs of a chunk"),
    "tree": ("log₂ C products", "give the weights of all pairs of a chunk, none of whose factors exceeds 1"),
    "scan": ("1 by 1", "go the tokens inside a chunk: no matrix product sums over pairs"),
    "total": ("1 sum", "over all tokens, which every token reads"),
}
"""What each factorisation that `recgen.algebra.derive` chooses among comes to: a fact of the page's head."""


@dataclass(frozen=True)
class Shown:
    """A section of the page, with its pictures; `folded` is the line that opens it where it is long."""

    id: str
    title: str
    body: Markup
    folded: str = ""
    figures: tuple[Markup, ...] = ()
    caption: str = ""


def page(found: Derivation, plan: Plan, module: ModuleType) -> str:
    """The page as HTML text. module: what the spec compiles to, which draws the inputs of the pictures."""
    spec = found.spec
    meaning = spec_page(spec, "latex")
    meaning = replace(meaning, sections=tuple(s for s in meaning.sections if s.level > 1))
    latex = explained(found, plan, "latex").latex()
    sections = [*parts(meaning.latex()), *parts(latex)]
    shown = [Shown(_id(part.title), part.title, part.body, FOLDED.get(part.title, "")) for part in sections]
    return (
        environment(Path(__file__).parent)
        .get_template("page.html.j2")
        .render(
            name=spec.name,
            title=spec.title or spec.name,
            cite=spec.cite,
            version=recgen.__version__,
            digest=spec.digest[:16],
            facts=[{"value": value, "label": label} for value, label in _facts(found, plan)],
            parts=[_pictured(part, found, module) for part in shown],
        )
    )


def _pictured(part: Shown, found: Derivation, module: ModuleType) -> Shown:
    """The section with the pictures that belong to it."""
    name, rec = found.spec.name, found.recurrence
    if part.title in MASK and rec.causal:
        figures = tuple(Markup(mask_picture(mask, name)) for mask in masks(rec, module))
        what = "What is left, after token t, of what token i wrote"
        drawn = ", for decays of randomly drawn inputs and of parameters as they start" if rec.log_decays else ""
        size = "; where the decay turns, its size" if rec.complex_step else ""
        caption = f"{what}{drawn}{size}. Where nothing is drawn, i > t and the weight is 0."
        return replace(part, figures=figures, caption=caption)
    if part.title == CHUNKS:
        figure = Markup(chunk_picture(pair_kinds(rec, found.program), name))
        return replace(part, figures=(figure,), caption=DIVIDED)
    return part


def _facts(found: Derivation, plan: Plan) -> Iterable[tuple[str, str]]:
    yield FACTORS[plan.factorisation]
    yield str(plan.chunk_size), "rows in a chunk, unless another size is asked for"
    several = "s" * (len(plan.schedules) > 1)
    yield str(len(plan.kernels)), f"kernels in the schedule{several} {' and '.join(plan.schedules)}"
    if found.proof is not None:
        yield str(len(found.proof.statements)), "statements proven before anything is emitted"


def _id(title: str) -> str:
    return re.sub(r"\W+", "-", title.lower()).strip("-")
