"""The graph of a tensor program: interned nodes, checked axes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sympy

from recgen.algebra.graph import Graph
from recgen.algebra.operations import Add, Map, placeholder
from recgen.algebra.program import Node, topological

a, b = sympy.symbols("a b", real=True)


@pytest.fixture
def g() -> Graph:
    return Graph()


def rows(g: Graph, name: str, axes: str) -> Node:
    return g.rows(g.leaf(name, "input", axes, "token"))


def test_the_same_operation_twice_is_the_same_node(g: Graph) -> None:
    q, k = rows(g, "q", "tm"), rows(g, "k", "tm")
    assert g.mul(q, k) is g.mul(q, k)
    assert g.exp(q) is g.exp(q)
    assert g.segment(q, "later", "chunk") is g.segment(q, "later", "chunk")
    assert g.segment(q, "later", "chunk") is not g.segment(q, "earlier", "chunk")


def test_no_two_nodes_have_one_name(g: Graph) -> None:
    rows(g, "v_2", "tv")
    rows(g, "v", "tv")
    g.leaf("v", "cotangent", "tv", "token")
    names = [n.name for n in g if n.name]
    assert len(names) == len(set(names)) == 5


def test_axes_are_kept_in_one_order_and_broadcast(g: Graph) -> None:
    assert g.mul(rows(g, "v", "tv"), g.columns(rows(g, "k", "tm"))).axes == ("t", "i", "m", "v")
    assert g.segment(rows(g, "k", "tm"), "earlier", "level").axes == ("s", "t", "m")
    assert g.count("between", "chunk").axes == ("t", "i")


def test_a_sum_of_sums_is_one_sum_unless_it_has_a_name(g: Graph) -> None:
    x, y, z = (rows(g, name, "t") for name in "xyz")
    assert g.add(g.add(x, y), z).args == (x, y, z)
    assert len(g.add(g.add(x, z, name="prefix"), y).args) == 2
    assert g.add(x) is x


def test_a_map_binds_only_what_it_uses(g: Graph) -> None:
    x, y = rows(g, "x", "t"), rows(g, "y", "t")
    assert g.map(a, {a: x, b: y}) is x
    assert g.map(sympy.exp(b), {a: x, b: y}).args == (y,)
    assert g.map(a * b, {a: x, b: x}).op.expr == placeholder(0) ** 2
    assert g.map(sympy.Integer(3), {a: x}).level == "head"


def test_a_product_of_one_value_is_the_value_and_of_none_is_1(g: Graph) -> None:
    x = rows(g, "x", "t")
    assert g.mul(x) is x
    assert g.mul().op == Map(sympy.S.One)


def test_columns_turned_back_are_the_rows_themselves(g: Graph) -> None:
    x = rows(g, "x", "tm")
    assert g.rename(g.columns(x), "i", "t") is x


ILLEGAL: dict[str, Callable[[Graph], Node]] = {
    "rows of what is constant in time": lambda g: g.rows(g.leaf("w", "param", "", "head")),
    "columns of columns": lambda g: g.columns(g.columns(rows(g, "k", "tm"))),
    "a segment sum without rows": lambda g: g.segment(g.columns(rows(g, "k", "tm")), "later", "chunk"),
    "sums between rows, per feature": lambda g: g.between(rows(g, "k", "tm")),
    "a rectangle of rows": lambda g: g.rectangle(rows(g, "k", "t")),
    "a mask on what is the same for all pairs": lambda g: g.mask(g.reduce(rows(g, "k", "t"), "t"), "causal"),
    "a product over an axis of one operand": lambda g: g.contract(rows(g, "k", "tm"), rows(g, "x", "t"), "m"),
    "a product over one of two shared axes": lambda g: g.contract(rows(g, "k", "tm"), rows(g, "q", "tm"), "m"),
    "a sum over an axis that is not there": lambda g: g.reduce(rows(g, "k", "tm"), "v"),
}


@pytest.mark.parametrize("what", ILLEGAL)
def test_a_malformed_program_cannot_be_built(what: str, g: Graph) -> None:
    with pytest.raises(ValueError):
        ILLEGAL[what](g)


def test_nodes_come_after_what_they_need(g: Graph) -> None:
    q, k = rows(g, "q", "tm"), rows(g, "k", "tm")
    scores = g.mask(g.contract(q, g.columns(k), "m"), "causal")
    order = topological([scores])
    assert all(order.index(arg) < order.index(n) for n in order for arg in n.args)
    assert topological([scores], stop={scores.args[0]}) == [scores.args[0], scores]


def test_a_sum_keeps_every_term(g: Graph) -> None:
    x = rows(g, "x", "t")
    assert g.add(x, x).op == Add()
    assert g.add(x, x).args == (x, x)
