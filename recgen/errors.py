"""What recgen says when a spec is wrong: where, what, why, and what to write instead.

A reader collects every `Problem` it finds before it gives up, so that one run shows them all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Location:
    """A place in a text; lines and columns count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


NOWHERE = Location("<spec>", 1, 1)

MOST_SHOWN = 40  # problems in a message


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong.

    location: where the offending text starts.
    text: the offending text itself, "" when something is missing.
    reason: why it is refused, one sentence without a final full stop.
    fix: what to write instead, "" when there is nothing to suggest.
    source: the line of the file that holds the offending text, "" when it is not known.
    """

    location: Location
    text: str
    reason: str
    fix: str = ""
    source: str = ""

    def __str__(self) -> str:
        lines = [f"{self.location}: {self.reason}"]
        if self.source.strip():
            lines += self._excerpt()
        elif self.text:
            lines.append(f"    found: {_one_line(self.text)}")
        if self.fix:
            lines.append(f"    fix: {self.fix}")
        return "\n".join(lines)

    def _excerpt(self) -> list[str]:
        """The source line, cut to a window around the offending text, and a caret below it."""
        column = self.location.column - 1
        start = max(0, column - 60)
        line = self.source[start : start + 120].replace("\t", " ")
        wide = max(1, min(len(self.text.splitlines()[0]) if self.text else 1, len(line) - (column - start)))
        return [f"    {line}", "    " + " " * (column - start) + "^" + "~" * (wide - 1)]


def shortened(text: str, most: int = 100) -> str:
    """The text, cut where it is too long to be shown."""
    return text if len(text) <= most else f"{text[:most]}…"


def _one_line(text: str) -> str:
    return shortened(text if text.isprintable() else ascii(text))


class SpecError(Exception):
    """A spec, or a family that it uses, is refused. `problems` holds everything that was found, in file order."""

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        found = [problems] if isinstance(problems, Problem) else list(problems)
        self.problems: tuple[Problem, ...] = tuple(sorted(found, key=lambda problem: problem.location))
        shown = [str(problem) for problem in self.problems[:MOST_SHOWN]]
        more = len(self.problems) - len(shown)
        super().__init__("\n".join([*shown, f"… and {more} more problems"] if more else shown))

    def __reduce__(self) -> tuple[type[SpecError], tuple[tuple[Problem, ...]]]:
        return type(self), (self.problems,)


class NotLowered(SpecError):
    """The spec is right and its mathematics is understood, but this version of recgen emits no code for it yet."""


class ProofError(Exception):
    """A program or its adjoint is not what the recurrence says. The message says what differs, where, at which cut."""
