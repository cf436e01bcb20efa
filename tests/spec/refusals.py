"""What a refused text says: shared by the tests of this folder."""

from __future__ import annotations

import pytest

from recgen.errors import Problem, SpecError
from recgen.spec import Spec, read_text

FILE = "operator.yaml"


def problems(text: str) -> tuple[Problem, ...]:
    """Everything that is wrong with the text; fails when it is accepted."""
    with pytest.raises(SpecError) as info:
        read_text(text, FILE)
    return info.value.problems


def only(text: str) -> Problem:
    """The one thing that is wrong with the text."""
    (problem,) = problems(text)
    return problem


def place(problem: Problem) -> tuple[int, int]:
    return problem.location.line, problem.location.column


def operator(body: str = "") -> Spec:
    """A spec with a name and these further lines."""
    return read_text(f"name: mine\n{body}", FILE)


def decayed(expression: str, kind: str = "gated", per: str = "head", declared: str = "inputs: {g: B T H}") -> str:
    """A spec whose fourth line is the log-decay, from column 8 on."""
    return f"name: mine\ndecay:\n  per: {per}\n  log: {expression}\n  type: {kind}\n{declared}\n"
