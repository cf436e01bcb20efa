r"""A page of `recgen explain --latex` as HTML, its formulas as MathML: it needs no network, no script and no font.

Understood is what explain writes: \subsection* and \paragraph* headings, align*, tabular and verbatim environments,
\[ … \], and prose with \( … \).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from latex2mathml.converter import convert
from markupsafe import Markup, escape

BLOCK = re.compile(
    r"\\subsection\*\{(?P<title>[^\n]*)\}\n"
    r"|\\paragraph\*\{(?P<heading>[^\n]*)\}\n"
    r"|\\begin\{align\*\}\n(?P<rows>.*?)\\end\{align\*\}\n?"
    r"|\\begin\{tabular\}\{l+\}\n(?P<table>.*?)\\end\{tabular\}\n?"
    r"|\\begin\{verbatim\}\n(?P<verbatim>.*?)\\end\{verbatim\}\n?"
    r"|\\\[\n(?P<display>.*?)\\\]\n?"
    r"|(?P<prose>[^\n]+)\n?",
    re.DOTALL,
)
_ALIGN = re.compile(r"\\begin\{align\*\}\n?(?P<rows>.*?)\\end\{align\*\}", re.DOTALL)
INLINE = re.compile(r"\\\((.*?)\\\)", re.DOTALL)
_WORDS = re.compile(r"\\(?:mathrm|text)\{((?:[^{}\\]|\\.)*)\}")
_CELL = re.compile(r"(?<!\\)&")


@dataclass(frozen=True)
class Part:
    """One titled part of the page."""

    title: str
    body: Markup


def parts(latex: str) -> list[Part]:
    """The page's sections in order, each converted to HTML."""
    found: list[tuple[str, list[Markup]]] = []
    for title, html in _blocks(latex):
        if title is not None:
            found.append((title, []))
        elif found:
            found[-1][1].append(html)
    return [Part(title, Markup("\n").join(body)) for title, body in found]


def _blocks(latex: str) -> Iterator[tuple[str | None, Markup]]:
    for match in BLOCK.finditer(latex):
        kind, text = match.lastgroup, match[match.lastgroup or 0]
        if kind == "title":
            yield text, Markup()
        elif kind == "heading":
            yield None, Markup("<h4>{}</h4>").format(prose(text))
        elif kind == "rows":
            yield None, Markup('<div class="equations">{}</div>').format(aligned(text))
        elif kind == "table":
            yield None, table(text)
        elif kind == "verbatim":
            yield None, Markup('<pre class="code wrap">{}</pre>').format(text.rstrip())
        elif kind == "display":
            yield None, Markup('<div class="equations">{}</div>').format(_math(text, "block"))
        else:
            yield None, Markup("<p>{}</p>").format(prose(text))


def prose(text: str) -> Markup:
    """A paragraph: mathematics between \\( and \\), escaped signs outside it."""
    pieces = INLINE.split(text)
    return Markup("").join(
        _math(piece, "inline") if n % 2 else escape(re.sub(r"\\([_#%&$])", r"\1", piece.replace(r"\^{}", "^")))
        for n, piece in enumerate(pieces)
    )


def table(rows: str) -> Markup:
    """The rows of a tabular environment; those above a line are titles."""
    head, line, body = rows.rpartition("\\hline\n")
    parts = [("th", head), ("td", body)] if line else [("td", rows)]
    lines = [Markup("<tr>{}</tr>").format(_cells(row, tag)) for tag, part in parts for row in _rows(part)]
    return Markup('<div class="wide"><table>{}</table></div>').format(Markup("").join(lines))


def _rows(text: str) -> list[str]:
    return [row.strip() for row in re.split(r"\\\\[ ]*\n", text) if row.strip()]


def _cells(row: str, tag: str) -> Markup:
    return Markup("").join(Markup(f"<{tag}>{{}}</{tag}>").format(prose(cell.strip())) for cell in _CELL.split(row))


def aligned(rows: str) -> Markup:
    """The rows of an align* environment as a table whose relations stand in one column."""
    lines = [_CELL.split(row, maxsplit=1) for row in re.split(r"\\\\\s*\n", rows.strip()) if row.strip()]
    cells = [[_inner(side) if side.strip() else Markup("") for side in line] for line in lines]
    body = Markup("").join(
        Markup('<mtr><mtd style="text-align: right">{}</mtd><mtd style="text-align: left">{}</mtd></mtr>').format(*row)
        for row in cells
    )
    return Markup('<math display="block"><mtable>{}</mtable></math>').format(body)


def formula(latex: str, display: str) -> Markup:
    """One formula, "inline" or as a "block"; a block may be an align* environment."""
    environment = _ALIGN.fullmatch(latex.strip())
    return aligned(environment["rows"]) if environment else _math(latex, display)


def _math(latex: str, display: str) -> Markup:
    return Markup(convert(_spoken(latex.strip()), display=display))


def _inner(latex: str) -> Markup:
    """What stands inside the <math> element of a formula in display style."""
    element = convert(_spoken(latex.strip()), display="block")
    inside = Markup(element[element.index(">") + 1 : -len("</math>")])
    return Markup('<mstyle displaystyle="true">{}</mstyle>').format(inside)


def _spoken(latex: str) -> str:
    r"""Whole words as \text, so that they come out as words and not letter by letter."""

    def words(match: re.Match[str]) -> str:
        plain = re.sub(r"\\[ ,]", " ", match[1]).replace(r"\_", "_")
        return rf"\text{{{plain}}}"

    return _WORDS.sub(words, latex)
