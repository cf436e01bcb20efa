"""The chunk program is the recurrence, however the sequence is cut, and no exponent of it is positive."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

from recgen.algebra.exact import Residues
from recgen.algebra.interpret import Cut, Run, run
from recgen.algebra.operations import Between, Count, Map, Mask, Segment
from recgen.algebra.program import Program
from recgen.algebra.recurrence import Recurrence
from recgen.algebra.tokens import Array, Draw
from recgen.algebra.trials import cuts
from recgen.algebra.unrolled import Unrolled
from tests.algebra.floats import Floats, close
from tests.algebra.show.catalogue import derived, every_case

WIDTHS = {"m": 2, "v": 3}


def initial(rec: Recurrence, domain: object, draw: Draw) -> dict[str, Array]:
    unrolled = Unrolled(rec, draw, domain, 0)
    return {name: values(x) for name, x in unrolled.initial.items()}


def values(x: Array) -> Array:
    return np.vectorize(lambda tracked: tracked.value, otypes=[object])(x)


def computed(name: str, factorisation: str, cut: Cut, domain: object) -> Run:
    d, draw = derived(name, factorisation), Draw(3, WIDTHS)
    return run(d.program, draw, domain, cut, initial(d.rec, domain, draw))


@every_case
@pytest.mark.parametrize("cut", [Cut(1, (1, 1, 1)), Cut(4, (4, 2)), Cut(8, (3, 8)), Cut(16, (13,))], ids=str)
def test_the_program_is_the_recurrence_in_ordinary_numbers(name: str, factorisation: str, cut: Cut) -> None:
    found = computed(name, factorisation, cut, Floats())
    loop = Unrolled(derived(name, factorisation).rec, Draw(3, WIDTHS), Floats(), cut.length)
    assert close(found.outputs["o"], values(loop.outputs))
    assert all(close(found.ends[state], values(x)) for state, x in loop.states.items())


@every_case
def test_every_cut_gives_the_same(name: str, factorisation: str) -> None:
    domain = Residues()
    one, *others = [computed(name, factorisation, cut, domain) for size in (1, 2, 4, 8) for cut in cuts(4, size)]
    for other in others:
        assert np.all(other.outputs["o"] == one.outputs["o"])
        assert all(np.all(other.ends[state] == x) for state, x in one.ends.items())


@every_case
def test_an_empty_chunk_hands_on_what_it_was_given(name: str, factorisation: str) -> None:
    found = computed(name, factorisation, Cut(4, (0,)), Residues())
    assert found.outputs["o"].shape == (0, 3)
    assert all(np.all(x == found.starts[state][0]) for state, x in found.ends.items())


@pytest.mark.parametrize(
    ("name", "factorisation"),
    [
        ("retnet", "plain"),
        ("learned_decay", "plain"),
        ("simple_gla", "plain"),
        ("gla", "tree"),
    ],
)
def test_no_exponent_is_positive(name: str, factorisation: str) -> None:
    domain = Floats()
    computed(name, factorisation, Cut(16, (16, 9)), domain)
    assert domain.largest <= 0


def test_the_plain_factors_have_positive_exponents() -> None:
    domain = Floats()
    computed("gla", "plain", Cut(16, (16,)), domain)
    assert domain.largest > 0


def operations(program: Program) -> list[object]:
    return [n.op for n in program.nodes()]


def exponentials(program: Program) -> list[object]:
    return [op for op in operations(program) if isinstance(op, Map) and op.expr.has(sympy.exp)]


def test_without_decay_nothing_is_exponentiated() -> None:
    assert not exponentials(derived("linear_attention", "plain").program)


def test_a_gate_per_head_weighs_pairs_by_masked_sums() -> None:
    assert Between() in operations(derived("simple_gla", "plain").program)


def test_a_decay_constant_in_time_only_counts_rows() -> None:
    found = operations(derived("retnet", "plain").program)
    assert Count("between", "chunk") in found
    assert not any(isinstance(op, Between | Segment) for op in found)


def test_a_gate_per_key_parts_pairs_at_one_level_of_the_tree() -> None:
    found = operations(derived("gla", "tree").program)
    assert Mask("siblings") in found
    assert Segment("later", "level") in found
    assert Mask("causal") not in found
