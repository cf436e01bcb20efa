"""A page of mathematics: sections of prose, equations, matrices and tables, printed as plain text or as LaTeX."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from .layout import Equation, latex_rows, text_rows
from .notation import NO_BREAK

WIDTH = 100


@dataclass(frozen=True)
class Prose:
    """A paragraph; mathematics in it is already spelled in the document's style."""

    words: str

    def text(self) -> list[str]:
        return _wrapped(self.words, WIDTH - 2)

    def latex(self) -> list[str]:
        return [self.words]


@dataclass(frozen=True)
class Equations:
    """Equations that stand under each other."""

    equations: tuple[Equation, ...]

    def text(self) -> list[str]:
        return ["  " + row for row in text_rows(self.equations, WIDTH - 4)]

    def latex(self) -> list[str]:
        rows = latex_rows(self.equations)
        return [r"\begin{align*}", *(f"  {row} \\\\" for row in rows[:-1]), f"  {rows[-1]}", r"\end{align*}"]


@dataclass(frozen=True)
class Matrix:
    """A matrix of entries that are already spelled, after "name = "."""

    name: str
    rows: tuple[tuple[str, ...], ...]

    def text(self) -> list[str]:
        widths = [max(len(row[k]) for row in self.rows) for k in range(len(self.rows[0]))]
        lines = []
        for r, row in enumerate(self.rows):
            left, right = "⎡⎤" if r == 0 else "⎣⎦" if r == len(self.rows) - 1 else "⎢⎥"
            start = f"  {self.name} = " if r == (len(self.rows) - 1) // 2 else " " * (len(self.name) + 5)
            entries = "   ".join(x.ljust(w) for x, w in zip(row, widths, strict=True))
            lines.append(f"{start}{left} {entries} {right}")
        return lines

    def latex(self) -> list[str]:
        body = r" \\ ".join(" & ".join(row) for row in self.rows)
        return [r"\[", rf"  {self.name} = \begin{{pmatrix}} {body} \end{{pmatrix}}", r"\]"]


@dataclass(frozen=True)
class Table:
    """Rows of plain words; the last column may be wrapped. The first row may be the columns' titles."""

    rows: tuple[tuple[str, ...], ...]
    titled: bool = False

    def text(self) -> list[str]:
        columns = len(self.rows[0])
        widths = [max(len(row[k]) for row in self.rows) for k in range(columns - 1)]
        lines = []
        for row in self.rows:
            start = "  " + "".join(x.ljust(w + 3) for x, w in zip(row, widths, strict=False)).replace(NO_BREAK, " ")
            words = _wrapped(row[-1], max(WIDTH - len(start), 30)) or [""]
            lines += [(start + words[0]).rstrip(), *(" " * len(start) + w for w in words[1:])]
        return lines

    def latex(self) -> list[str]:
        body = [" & ".join(row) + r" \\" for row in self.rows]
        body[1:1] = [r"\hline"] * self.titled
        return [rf"\begin{{tabular}}{{{'l' * len(self.rows[0])}}}", *(f"  {row}" for row in body), r"\end{tabular}"]


@dataclass(frozen=True)
class Verbatim:
    """Lines as they are; in plain text, one that is too wide is broken under its own indent."""

    lines: tuple[str, ...]

    def text(self) -> list[str]:
        rows: list[str] = []
        for line in self.lines:
            indent = line[: len(line) - len(line.lstrip())]
            rows += [indent + row for row in _wrapped(line.strip(), WIDTH - 2 - len(indent))] or [""]
        return rows

    def latex(self) -> list[str]:
        return [r"\begin{verbatim}", *self.lines, r"\end{verbatim}"]


Block = Prose | Equations | Matrix | Table | Verbatim


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it. `level` 1 is the page's own title."""

    title: str
    blocks: tuple[Block, ...]
    level: int = 2


@dataclass(frozen=True)
class Document:
    """Sections in order. Everything in it is spelled in one style; print it in that style."""

    sections: tuple[Section, ...]

    def text(self) -> str:
        lines: list[str] = []
        for s in self.sections:
            lines += [s.title, ("=" if s.level == 1 else "-") * len(s.title)] if s.level < 3 else [f"  {s.title}"]
            for b in s.blocks:
                lines += [f"  {row}".rstrip() for row in b.text()] + [""]
            lines += [] if s.blocks else [""]
        return "\n".join(lines).rstrip() + "\n"

    def latex(self) -> str:
        lines: list[str] = []
        for s in self.sections:
            command = {1: "section", 2: "subsection", 3: "paragraph"}[s.level]
            lines += [rf"\{command}*{{{s.title}}}", *(row for b in s.blocks for row in b.latex()), ""]
        return "\n".join(lines).rstrip() + "\n"

    def printed(self, latex: bool) -> str:
        return self.latex() if latex else self.text()


def _wrapped(words: str, width: int) -> list[str]:
    rows = textwrap.wrap(words, width, break_long_words=False, break_on_hyphens=False)
    return [row.replace(NO_BREAK, " ") for row in rows]


def equations(found: Sequence[Equation]) -> tuple[Equations, ...]:
    """A block of equations, or nothing when there are none."""
    return (Equations(tuple(found)),) if found else ()
