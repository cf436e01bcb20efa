"""The catalogue's operators, derived once for all tests of their notation."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import pytest

from recgen.algebra.adjoint import adjoint
from recgen.algebra.bounds import bounds
from recgen.algebra.chunkwise import chunk_program
from recgen.algebra.mathtext import explain_derivation
from recgen.algebra.program import Node, Program
from recgen.algebra.recurrence import Recurrence
from recgen.algebra.statement import recurrence
from recgen.resources import specs_dir
from recgen.spec import Spec, read

CAUSAL = [
    ("linear_attention", "plain"),
    ("retnet", "plain"),
    ("learned_decay", "plain"),
    ("simple_gla", "plain"),
    ("gla", "plain"),
    ("gla", "tree"),
]
TOTAL = ("linear_attention_global", "total")
CASES = [*CAUSAL, TOTAL]
every_case = pytest.mark.parametrize(("name", "factorisation"), CASES)
every_causal_case = pytest.mark.parametrize(("name", "factorisation"), CAUSAL)


class Derived(NamedTuple):
    spec: Spec
    rec: Recurrence
    program: Program
    adjoint: Program

    @property
    def nodes(self) -> list[Node]:
        return list(dict.fromkeys([*self.program.nodes(), *self.adjoint.nodes()]))

    def called(self, name: str) -> Node:
        (found,) = [n for n in self.nodes if n.name == name]
        return found

    def explained(self, factorisation: str, latex: bool = False) -> str:
        interval = bounds(self.spec.decay.log.tree)
        return explain_derivation(self.rec, self.program, self.adjoint, interval, factorisation, latex=latex)


@cache
def derived(name: str, factorisation: str) -> Derived:
    spec = read(specs_dir() / f"{name}.yaml")
    rec = recurrence(spec)
    program = chunk_program(rec, factorisation)
    return Derived(spec, rec, program, adjoint(program))
