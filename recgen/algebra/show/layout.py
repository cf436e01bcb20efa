"""Equations and how they are laid out: on one line, broken over several, or as rows of a LaTeX `aligned`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .notation import Binds, Piece, Style


@dataclass(frozen=True)
class Term:
    """One term of a right side, its sign apart. `note` says in words where it comes from."""

    sign: str
    text: str
    note: str = ""


@dataclass(frozen=True)
class Equation:
    """left relation terms, and a remark after it. All of it is already spelled in one style."""

    left: str
    relation: str
    terms: tuple[Term, ...]
    remark: str = ""

    @property
    def start(self) -> str:
        return f"{self.left}{'' if self.relation == ':' else ' '}{self.relation} " if self.left else ""

    def line(self) -> str:
        text = self.start
        for k, t in enumerate(self.terms):
            text += (t.text if t.sign == "+" else "-" + t.text) if k == 0 else f" {t.sign} {t.text}"
        return text + self.remark

    def lines(self, width: int) -> list[str]:
        """`line`, broken before + and - where it is wider than `width`; the terms stay aligned behind the relation."""
        indent = " " * max(len(self.start) - 2, 2)
        lines: list[str] = []
        for t in self.terms:
            if not lines:
                lines = [self.start + (t.text if t.sign == "+" else "-" + t.text)]
            elif len(lines[-1]) + len(t.text) + 3 <= width:
                lines[-1] += f" {t.sign} {t.text}"
            else:
                lines.append(f"{indent}{t.sign} {t.text}")
        return [*lines[:-1], lines[-1] + self.remark]

    def padded(self, width: int) -> Equation:
        """The left side filled up with blanks, so that the relations of several equations stand in one column."""
        return Equation(self.left.ljust(width), self.relation, self.terms, self.remark)


def terms(style: Style, pieces: Sequence[Piece], notes: Sequence[str] = ()) -> tuple[Term, ...]:
    """Pieces as the terms of a sum."""
    found = []
    for k, piece in enumerate(pieces):
        text = style.within(piece, Binds.SUM if len(pieces) > 1 else Binds.WHERE)
        note = notes[k] if notes else ""
        found.append(Term("-", text[1:], note) if text.startswith("-") else Term("+", text, note))
    return tuple(found)


def text_rows(equations: Sequence[Equation], width: int = 100) -> list[str]:
    """Plain text of several equations, their relations in one column. Terms with a note get a line each."""
    most = max((len(e.left) for e in equations), default=0)
    rows: list[str] = []
    for e in (e.padded(most) for e in equations):
        if not any(t.note for t in e.terms):
            rows += e.lines(width)
            continue
        first = e.terms[0]
        starts = [e.start + ("-" if first.sign == "-" else "") + first.text]
        starts += [f"{' ' * (len(e.start) - 2)}{t.sign} {t.text}" for t in e.terms[1:]]
        column = max(map(len, starts)) + 4
        rows += [f"{s.ljust(column)}({t.note})" if t.note else s for s, t in zip(starts, e.terms, strict=True)]
    return rows


def latex_rows(equations: Sequence[Equation]) -> list[str]:
    """Rows of an `aligned` environment; a sum of more than two terms gets a row per term."""
    rows: list[str] = []
    for e in equations:
        left = f"{e.left} &{':' if e.relation == ':' else ''}{'' if e.relation == ':' else e.relation} "
        parts = [t.text if t.sign == "+" else "-" + t.text for t in e.terms[:1]]
        parts += [f"{t.sign} {t.text}" for t in e.terms[1:]]
        parts = [p + (rf" \qquad \text{{({t.note})}}" if t.note else "") for p, t in zip(parts, e.terms, strict=True)]
        if len(parts) <= 2 and not any(t.note for t in e.terms):
            parts = [" ".join(parts)]
        rows.append(left + parts[0] + (e.remark if len(parts) == 1 else ""))
        rows += [rf"&\quad {p}" for p in parts[1:]]
    return rows
