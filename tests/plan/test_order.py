"""Statements come after what they need, and level values stay inside level loops."""

from __future__ import annotations

from recgen.algebra.derive import Derivation
from recgen.algebra.operations import Leaf, Rename
from recgen.plan.order import Compute, LevelLoop, statements


def test_every_statement_comes_after_its_arguments(derivation: Derivation) -> None:
    for program in (derivation.program, derivation.adjoint):
        done = set()
        for s in statements(program.roots()):
            nodes = [s.node] if isinstance(s, Compute) else [*s.body, *s.sums]
            for n in nodes:
                missing = [a for a in n.args if a not in done and not isinstance(a.op, Leaf)]
                assert not missing, f"{n} is computed before {missing}"
                done.add(n)
        assert set(program.roots()) <= done | set(program.leaves())


def test_level_values_are_computed_inside_loops_only(derivation: Derivation) -> None:
    for program in (derivation.program, derivation.adjoint):
        for s in statements(program.roots()):
            if isinstance(s, Compute):
                assert "s" not in s.node.axes
            else:
                assert all("s" in n.axes for n in s.body)
                assert all("s" not in n.axes for n in s.sums)


def test_known_nodes_are_not_computed_again(derivation: Derivation) -> None:
    program = derivation.program
    known = [n for n in program.nodes() if n.name in ("key", "decay") and not isinstance(n.op, Rename)]
    computed = [n for s in statements(program.roots(), known) if isinstance(s, Compute) for n in [s.node]]
    assert known and not set(known) & set(computed)


def test_a_tree_program_has_one_loop_forward() -> None:
    from .conftest import derivation_of

    loops = [s for s in statements(derivation_of("gla").program.roots()) if isinstance(s, LevelLoop)]
    assert [s.name for loop in loops for s in loop.sums] == ["scores_all"]
