"""Each operation of a program has its equation, with brackets and letters where they are needed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from recgen.algebra.graph import Graph
from recgen.algebra.mathtext import equation, equation_lines
from recgen.algebra.operations import Op
from recgen.algebra.program import Node
from recgen.algebra.show.formulas import formula
from tests.algebra.show.catalogue import derived, every_case


def graph() -> tuple[Graph, dict[str, Node]]:
    g = Graph()
    leaves = {
        name: g.leaf(name, "input", axes, "chunk")
        for name, axes in {"query": "tm", "key": "tm", "l": "t", "g": "tm", "G": "ti", "S": "mv"}.items()
    }
    return g, leaves


OPERATIONS: list[tuple[str, str, Callable[[Graph, dict[str, Node]], Node]]] = [
    (
        "x[t,i] = Σ_m query[t,m] key[i,m]",
        r"x_{t,i} = \sum_{m} \mathrm{query}_{t,m} \, \mathrm{key}_{i,m}",
        lambda g, n: g.contract(n["query"], g.columns(n["key"]), "m", "x"),
    ),
    (
        "x[t] = l[t] + Σ_{j<t} l[j]",
        r"x_{t} = l_{t} + \sum_{j < t} l_{j}",
        lambda g, n: g.add(n["l"], g.segment(n["l"], "earlier", "chunk"), name="x"),
    ),
    ("x[t] = Σ_{j>t} l[j]", r"x_{t} = \sum_{j > t} l_{j}", lambda g, n: g.segment(n["l"], "later", "chunk", "x")),
    (
        "x[s,t] = Σ_{j>t, j∈B_s(t)} l[j]",
        r"x_{s,t} = \sum_{j > t, j \in B_{s}(t)} l_{j}",
        lambda g, n: g.segment(n["l"], "later", "level", "x"),
    ),
    ("x[t,i] = Σ_{i<j≤t} l[j]", r"x_{t,i} = \sum_{i < j \leq t} l_{j}", lambda g, n: g.between(n["l"], name="x")),
    ("x[t] = Σ_{j≥t>i} G[j,i]", r"x_{t} = \sum_{j \geq t > i} G_{j,i}", lambda g, n: g.rectangle(n["G"], name="x")),
    ("x[t,i] = Σ_{i<j<t} l[j]", r"x_{t,i} = \sum_{i < j < t} l_{j}", lambda g, n: g.between(n["l"], True, "x")),
    ("x[t] = Σ_{j>t>i} G[j,i]", r"x_{t} = \sum_{j > t > i} G_{j,i}", lambda g, n: g.rectangle(n["G"], True, "x")),
    (
        "x[t,i] = G[t,i] where i < t",
        r"x_{t,i} = G_{t,i} \quad \mathrm{where} \; i < t",
        lambda g, n: g.mask(n["G"], "strict", "x"),
    ),
    ("x[t] = #{j<t}", r"x_{t} = \#\{j < t\}", lambda g, n: g.count("earlier", "chunk", "x")),
    (
        "x[t,i] = exp(G[t,i]) where i ≤ t",
        r"x_{t,i} = e^{G_{t,i}} \quad \mathrm{where} \; i \leq t",
        lambda g, n: g.mask(g.exp(n["G"]), "causal", "x"),
    ),
    (
        "x[s,t,i] = G[t,i] where B_s(i) is the sibling before B_s(t)",
        r"x_{s,t,i} = G_{t,i} \quad \mathrm{where} \; B_{s}(i)\mathrm{\ is\ the\ sibling\ before\ }B_{s}(t)",
        lambda g, n: g.mask(n["G"], "siblings", "x"),
    ),
    ("x[t,i] = #{i<j≤t}", r"x_{t,i} = \#\{i < j \leq t\}", lambda g, n: g.count("between", "chunk", "x")),
    ("x[t] = #{j≤t}", r"x_{t} = \#\{j \leq t\}", lambda g, n: g.count("through", "chunk", "x")),
    ("x = #{t}", r"x = \#\{t\}", lambda g, n: g.count("total", "chunk", "x")),
    ("x[m] = Σ_t g[t,m]", r"x_{m} = \sum_{t} g_{t,m}", lambda g, n: g.reduce(n["g"], "t", "x")),
    (
        "x = Σ_tokens Σ_m g[t,m]",
        r"x = \sum_{\mathrm{tokens}} \sum_{m} g_{t,m}",
        lambda g, n: g.accumulate(g.reduce(n["g"], "m"), "x"),
    ),
    (
        "x[t,c] = Σ_m query[t,m] S[m,c]",
        r"x_{t,c} = \sum_{m} \mathrm{query}_{t,m} \, S_{m,c}",
        lambda g, n: g.contract(n["query"], n["S"], "m", "x"),
    ),
    (
        "x[t,m] = Σ_j G[j,t] query[j,m]",
        r"x_{t,m} = \sum_{j} G_{j,t} \, \mathrm{query}_{j,m}",
        lambda g, n: g.label(g.rename(g.contract(n["G"], n["query"], "t"), "i", "t"), "x"),
    ),
    ("S[m,c]: an input", r"S_{m,c}: \mathrm{an\ input}", lambda g, n: n["S"]),
]


@pytest.mark.parametrize(("text", "latex", "build"), OPERATIONS, ids=[text for text, _, _ in OPERATIONS])
def test_each_operation_has_its_equation(text: str, latex: str, build: Callable) -> None:
    node = build(*graph())
    assert equation(node) == text
    assert equation(node, "latex") == latex


def test_no_operation_lacks_a_notation() -> None:
    assert all(formula.dispatch(op) is not formula.dispatch(Op) for op in Op.__subclasses__())


def test_a_node_without_a_name_is_written_out_where_it_is_used() -> None:
    g, n = graph()
    product = g.mul(n["query"], n["key"])
    assert equation(product) == "query[t,m] key[t,m]"
    assert equation(g.reduce(product, "m", "x")) == "x[t] = Σ_m query[t,m] key[t,m]"


def test_names_of_the_caller_come_first() -> None:
    g, n = graph()
    x = g.exp(g.exp(n["l"], "inner"), "x")
    assert equation(x) == "x[t] = exp(inner[t])"
    assert equation(x, names={x: "y", n["l"]: "log_decay", x.args[0]: ""}) == "y[t] = exp(exp(ℓ[t]))"


def test_brackets_keep_the_meaning() -> None:
    g, n = graph()
    total = g.add(n["l"], g.reduce(n["G"], "i"))
    assert equation(g.mul(n["l"], total, name="x")) == "x[t] = l[t] (l[t] + Σ_i G[t,i])"
    assert equation(g.mul(n["l"], g.reduce(n["G"], "i"), name="y")) == "y[t] = l[t] (Σ_i G[t,i])"
    assert equation(g.exp(g.neg(total), "z")) == "z[t] = exp(-(l[t] + Σ_i G[t,i]))"
    assert equation(g.reduce(g.mask(n["G"], "causal"), "i", "w")) == "w[t] = Σ_i (G[t,i] where i ≤ t)"
    assert equation(g.mul(n["l"], g.mask(n["G"], "causal"), name="u")) == "u[t,i] = l[t] (G[t,i] where i ≤ t)"


def test_inner_sums_never_reuse_a_letter_that_is_taken() -> None:
    g, n = graph()
    written_out = g.contract(n["query"], g.contract(n["key"], g.leaf("value", "input", "tv", "chunk"), "t"), "m", "y")
    assert equation(written_out) == "y[t,c] = Σ_m query[t,m] (Σ_j key[j,m] value[j,c])"
    twice = g.segment(g.segment(n["l"], "later", "chunk"), "earlier", "chunk", "x")
    assert equation(twice) == "x[t] = Σ_{j<t} Σ_{r>j} l[r]"


def test_an_unknown_style_is_refused() -> None:
    with pytest.raises(ValueError, match="style is 'html'; there are 'text', 'latex'"):
        equation(graph()[1]["S"], "html")


@every_case
def test_broken_lines_say_what_the_whole_line_says(name: str, factorisation: str) -> None:
    for n in derived(name, factorisation).nodes:
        assert " ".join(line.strip() for line in equation_lines(n, width=30)) == equation(n)
