"""The adjoint: one transpose per operation, nothing divided by an argument, nothing forgotten."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import sympy

from recgen.algebra.exact import Residues
from recgen.algebra.graph import Graph
from recgen.algebra.meaning import Chunk, meaning
from recgen.algebra.operations import Leaf, Map
from recgen.algebra.program import Node
from recgen.algebra.tokens import Array
from tests.algebra.show.catalogue import derived, every_case

SIZE = 8
LEVELS = 3


def matrix(node: Node) -> Array:
    """What a linear operation does to each entry of its only varying argument, as a matrix."""
    chunk = Chunk(SIZE, range(SIZE), Residues())
    (source,) = node.args
    shape = [{"s": LEVELS, "m": 2}.get(a, SIZE) for a in source.axes]
    columns = []
    for index in np.ndindex(*shape):
        unit = np.full(shape, 0, dtype=object)
        unit[index] = 1
        columns.append(meaning(node.op, node, [unit], chunk).astype(int).ravel())
    return np.array(columns).T


def rows(g: Graph, axes: str) -> Node:
    return g.rows(g.leaf("x", "input", axes, "token"))


def pairs(g: Graph) -> Node:
    return g.mul(rows(g, "t"), g.columns(rows(g, "t")))


def test_sums_over_earlier_and_later_rows_are_each_others_transpose() -> None:
    g = Graph()
    x = rows(g, "tm")
    assert np.array_equal(matrix(g.segment(x, "earlier", "chunk")), matrix(g.segment(x, "later", "chunk")).T)


def test_sums_between_rows_and_over_rectangles_are_each_others_transpose() -> None:
    g = Graph()
    for inside in (False, True):
        assert np.array_equal(matrix(g.between(rows(g, "t"), inside)), matrix(g.rectangle(pairs(g), inside)).T)


def test_level_sums_are_transposed_level_by_level() -> None:
    g = Graph()
    earlier, later = (
        matrix(g.segment(rows(g, "t"), kind, "level")).reshape(LEVELS, SIZE, SIZE) for kind in ("earlier", "later")
    )
    assert np.array_equal(earlier, later.transpose(0, 2, 1))
    assert [int(m.sum()) for m in earlier] == [0, 4, 12]


def test_a_mask_is_its_own_transpose() -> None:
    g = Graph()
    causal = matrix(g.mask(pairs(g), "causal"))
    assert np.array_equal(causal, causal.T)


def test_siblings_of_all_levels_are_the_pairs_below_the_diagonal_once_each() -> None:
    g = Graph()
    node = g.mask(pairs(g), "siblings")
    kept = meaning(node.op, node, [np.full((SIZE, SIZE), 1, dtype=object)], Chunk(SIZE, range(SIZE), Residues()))
    assert np.array_equal(kept.sum(axis=0).astype(int), np.tril(np.ones((SIZE, SIZE), int), -1))


@every_case
def test_every_input_and_parameter_has_a_gradient(name: str, factorisation: str) -> None:
    d = derived(name, factorisation)
    assert set(d.adjoint.outputs) == {f"d_{t.name}" for t in d.spec.tensors}
    for tensor in d.spec.tensors:
        (leaf,) = [n for n in d.nodes if n.op in (Leaf(tensor.name, "input"), Leaf(tensor.name, "param"))]
        assert d.adjoint.outputs[f"d_{tensor.name}"].axes == leaf.axes


@every_case
def test_every_carried_value_has_a_carried_gradient_that_decays_alike(name: str, factorisation: str) -> None:
    d = derived(name, factorisation)
    assert [(c.name, c.decay) for c in d.adjoint.carries] == [(c.name, c.decay) for c in d.program.carries]


@every_case
def test_nothing_is_divided_by_but_the_normalizer(name: str, factorisation: str) -> None:
    for node in derived(name, factorisation).adjoint.nodes():
        if isinstance(node.op, Map):
            below = sympy.denom(sympy.together(node.op.expr))
            divisors = {node.args[int(s.name[1:])].name for s in below.free_symbols}
            assert divisors <= {"n"}, f"{node.name}: {node.op.expr}"


@every_case
def test_an_exponential_reuses_its_own_value(name: str, factorisation: str) -> None:
    d = derived(name, factorisation)
    inside = [n for n in d.adjoint.nodes() if n.level == "chunk" and isinstance(n.op, Map) and n.op.expr.has(sympy.exp)]
    assert set(inside) <= set(d.program.nodes())


SCRIPT = """
from tests.algebra.mutation import describe
from tests.algebra.show.catalogue import derived
print([describe(n) for n in derived("linear_attention", "plain").nodes])
"""


def test_the_same_program_is_derived_whatever_the_order_of_sets() -> None:
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in "1458"
    ]
    texts = [run.communicate()[0] for run in runs]
    assert texts[0]
    assert len(set(texts)) == 1
