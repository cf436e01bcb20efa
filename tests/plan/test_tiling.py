"""A kernel sees one tile of an axis: what is complete there, what is a partial sum, and what must be kept."""

from __future__ import annotations

import pytest
import sympy

from recgen.algebra.graph import Graph
from recgen.algebra.operations import placeholder
from recgen.algebra.program import Node
from recgen.plan.tiling import NotTileable, partial_values


@pytest.fixture
def graph() -> Graph:
    return Graph()


def rows(g: Graph, name: str, axes: str) -> Node:
    return g.rows(g.leaf(name, "input", axes, "token"))


def test_a_sum_over_the_tiled_axis_is_partial_and_linear_operations_keep_it_so(graph: Graph) -> None:
    q, k = rows(graph, "q", "tm"), graph.columns(rows(graph, "k", "tm"))
    scores = graph.contract(q, k, "m")
    masked = graph.mask(scores, "causal")
    total = graph.reduce(masked, "i")
    assert partial_values([total], "m", ()) == {scores, masked, total}
    assert partial_values([total], "v", ()) == set()


def test_a_partial_value_must_not_be_used_nonlinearly(graph: Graph) -> None:
    q = rows(graph, "q", "tm")
    n = graph.reduce(q, "m")
    with pytest.raises(NotTileable) as caught:
        partial_values([graph.exp(n)], "m", ())
    assert caught.value.needed == [n]
    assert partial_values([graph.exp(n)], "m", kept=[n]) == set()


def test_a_partial_value_must_not_meet_a_complete_one_in_a_sum(graph: Graph) -> None:
    q, g = rows(graph, "q", "tm"), rows(graph, "g", "t")
    with pytest.raises(NotTileable):
        partial_values([graph.add(graph.reduce(q, "m"), g)], "m", ())


def test_a_partial_value_must_not_spread_over_the_tiled_axis(graph: Graph) -> None:
    q = rows(graph, "q", "tm")
    with pytest.raises(NotTileable):
        partial_values([graph.mul(graph.reduce(q, "m"), q)], "m", ())


def test_the_product_of_a_partial_and_a_complete_value_is_partial(graph: Graph) -> None:
    q, g = rows(graph, "q", "tm"), rows(graph, "g", "t")
    product = graph.mul(graph.reduce(q, "m"), g)
    assert product in partial_values([product], "m", ())
    square = graph.map(placeholder(0) ** 2, {placeholder(0): graph.reduce(q, "m")})
    with pytest.raises(NotTileable):
        partial_values([square], "m", ())
    assert isinstance(square.op.expr, sympy.Pow)
