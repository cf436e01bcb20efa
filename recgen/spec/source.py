"""A text with its file name, and the problems found in it so far."""

from __future__ import annotations

import difflib
from bisect import bisect_right
from collections.abc import Iterable
from functools import cached_property

from recgen.errors import Location, Problem, SpecError


class Source:
    """A text that knows where each of its characters stands. Positions are offsets into the text, from 0."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text

    @cached_property
    def _lines(self) -> list[str]:
        return self.text.splitlines() or [""]

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        for line in self.text.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        return starts[:-1] if len(starts) > 1 and starts[-1] == len(self.text) else starts

    def location(self, position: int) -> Location:
        row = max(0, bisect_right(self._starts, position) - 1)
        return Location(self.file, row + 1, position - self._starts[row] + 1)

    def problem(self, position: int, text: str, reason: str, fix: str = "") -> Problem:
        location = self.location(position)
        row = location.line - 1
        return Problem(location, text, reason, fix, self._lines[row] if row < len(self._lines) else "")


class Findings:
    """Collects problems, so that a reader can go on and report them together."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def add(self, problem: Problem) -> None:
        if problem not in self.problems:
            self.problems.append(problem)

    def extend(self, problems: Iterable[Problem]) -> None:
        for problem in problems:
            self.add(problem)

    def raise_if_any(self) -> None:
        """Raises SpecError with everything that was found."""
        if self.problems:
            raise SpecError(self.problems)


def near(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known word that `word` was probably meant to be, None when nothing is close.

    cutoff: how much of them has to agree, from 0 to 1.
    """
    options = sorted(set(known))
    folded = {option.lower(): option for option in reversed(options)}
    if word.lower() in folded:
        return folded[word.lower()]
    matches = difflib.get_close_matches(word[:64].lower(), list(folded), n=1, cutoff=cutoff)
    return folded[matches[0]] if matches else None


def suggestion(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """What to write instead of a word that is not known: the nearest that is, or else what `otherwise` says."""
    close = near(word, known)
    return f"did you mean {close}?" if close else otherwise


def listing(words: Iterable[str], last: str = "or") -> str:
    """`a, b or c`."""
    shown = list(words)
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} {last} {shown[-1]}"
