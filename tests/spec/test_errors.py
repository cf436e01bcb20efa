"""Errors show the place, the line with a caret, the reason and the fix; they survive being sent between processes."""

from __future__ import annotations

import pickle

import pytest

from recgen.errors import Location, NotLowered, Problem, SpecError

PROBLEM = Problem(Location("a.yaml", 3, 8), "K^2", "^ is not an operator here", "write **", "scale: K^2")


def test_a_problem_shows_where_what_why_and_what_to_write() -> None:
    assert str(PROBLEM).split("\n") == [
        "a.yaml:3:8: ^ is not an operator here",
        "    scale: K^2",
        "           ^~~",
        "    fix: write **",
    ]


def test_without_the_line_the_offending_text_is_shown() -> None:
    problem = Problem(Location("a.yaml", 3, 8), "a\0b", "no text")
    assert str(problem).split("\n") == ["a.yaml:3:8: no text", "    found: 'a\\x00b'"]


def test_a_long_line_is_cut_around_the_offending_text() -> None:
    problem = Problem(Location("a.yaml", 1, 501), "here", "wrong", "", "x" * 500 + "here" + "x" * 500)
    _, line, caret = str(problem).split("\n")
    assert len(line) <= 124
    assert line[caret.index("^") :].startswith("here")


def test_problems_come_in_the_order_of_the_file() -> None:
    later = Problem(Location("a.yaml", 10, 1), "", "second")
    error = SpecError([later, PROBLEM])
    assert error.problems == (PROBLEM, later)
    assert str(error) == f"{PROBLEM}\n{later}"


@pytest.mark.parametrize("kind", [SpecError, NotLowered])
def test_errors_survive_pickling(kind: type[SpecError]) -> None:
    again = pickle.loads(pickle.dumps(kind(PROBLEM)))
    assert type(again) is kind
    assert again.problems == (PROBLEM,)
    assert isinstance(again, SpecError)


def test_of_very_many_problems_the_first_are_shown() -> None:
    error = SpecError(Problem(Location("a.yaml", line, 1), "", "wrong") for line in range(1, 101))
    assert len(error.problems) == 100
    assert str(error).splitlines()[-2:] == ["a.yaml:40:1: wrong", "… and 60 more problems"]
