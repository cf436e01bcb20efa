"""The LaTeX is well-formed and stays within what amsmath, KaTeX and matplotlib share."""

from __future__ import annotations

import re

from recgen.algebra.mathtext import equation, explain_spec
from tests.algebra.show.catalogue import derived, every_case

COMMANDS = {
    "mathrm",
    "operatorname",
    "sum",
    "frac",
    "left",
    "right",
    "ell",
    "leq",
    "geq",
    "neq",
    "in",
    "quad",
    "qquad",
    "leftarrow",
    "partial",
    "infty",
    "cdot",
    "sqrt",
    "log",
    "min",
    "max",
    "text",
    "begin",
    "end",
    "section",
    "subsection",
    "paragraph",
    "times",
    "hline",
}
"""Every command that may appear: all of them in amsmath, KaTeX and, inside a formula, matplotlib."""


def well_formed(latex: str) -> None:
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", latex):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    assert depth == 0
    assert len(re.findall(r"\\left\b", latex)) == len(re.findall(r"\\right\b", latex))
    opened = re.findall(r"\\begin\{([a-z*]+)\}", latex)
    assert sorted(opened) == sorted(re.findall(r"\\end\{([a-z*]+)\}", latex))
    assert set(re.findall(r"\\([A-Za-z]+)", latex)) <= COMMANDS
    assert not re.search(r"[^\\]_[^{]", re.sub(r"\\begin\{verbatim\}.*?\\end\{verbatim\}", "", latex, flags=re.S))


@every_case
def test_latex_is_well_formed(name: str, factorisation: str) -> None:
    d = derived(name, factorisation)
    for n in d.nodes:
        well_formed(equation(n, "latex"))
    well_formed(d.explained(factorisation, latex=True))
    well_formed(explain_spec(d.spec, latex=True))


@every_case
def test_latex_formulas_hold_no_unicode_signs(name: str, factorisation: str) -> None:
    d = derived(name, factorisation)
    assert all(equation(n, "latex").isascii() for n in d.nodes)
    outside = re.sub(r"\\begin\{verbatim\}.*?\\end\{verbatim\}", "", explain_spec(d.spec, latex=True), flags=re.S)
    assert set(re.findall(r"[^\x00-\x7f]", d.explained(factorisation, latex=True) + outside)) <= {"…"}
