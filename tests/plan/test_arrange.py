"""Any order that is asked for becomes one in which every statement comes after what it needs, and computes the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from recgen.algebra.operations import Leaf
from recgen.algebra.program import Node, topological
from recgen.emit.groups import grouped_inputs
from recgen.emit.module import module_text
from recgen.emit.triton_lines import order_of
from recgen.plan.arrange import Part, arranged, in_parts, words
from recgen.plan.kernels import Kernel, Plan
from recgen.plan.order import Compute, LevelLoop, statements
from recgen.plan.tiles import with_orders
from recgen.verify import load_module, verify_module

from .conftest import derivation_of, plan_of

NAMES = ["simple_gla", "gla", "mamba2", "gla_value", "mlstm"]


def kernels(name: str) -> Iterator[Kernel]:
    yield from (replace(k, order=()) for k in plan_of(name).kernels)


def name_of(n: Node) -> str:
    return "" if n.level == "head" else n.name


def shuffled(order: list[str], seed: int) -> tuple[str, ...]:
    random.Random(seed).shuffle(order)
    return tuple(order)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", NAMES)
def test_every_statement_comes_after_what_it_needs(name: str, seed: int) -> None:
    for kernel in kernels(name):
        known = {*kernel.kept, *kernel.edges, *kernel.starts, *(n for n in kernel.nodes() if isinstance(n.op, Leaf))}
        todo = [s for s in statements(kernel.roots(), known) if isinstance(s, LevelLoop) or name_of(s.node)]
        made = {n for s in todo for n in (s.sums if isinstance(s, LevelLoop) else (s.node,))}
        order = shuffled(words(todo, name_of), seed)
        have, begun = set(known), {}
        for s in arranged(todo, order, name_of, known):
            if isinstance(s, Part):
                assert s.terms == s.node.args[begun.get(s.node, 0) :][: len(s.terms)], "each term once, in turn"
                begun[s.node] = begun.get(s.node, 0) + len(s.terms)
            own = s.sums if isinstance(s, LevelLoop) else (s.node,)
            needed = (*s.body, *s.sums) if isinstance(s, LevelLoop) else getattr(s, "terms", s.node.args)
            assert not (set(topological(needed, have)) & made) - have - set(own)
            have |= set() if isinstance(s, Part) and not s.last else set(own)
        assert made <= have


@pytest.mark.parametrize("name", NAMES)
def test_an_order_says_itself(name: str) -> None:
    grouped = grouped_inputs(derivation_of(name).spec)
    for kernel in kernels(name):
        first = order_of(kernel, grouped)
        assert order_of(replace(kernel, order=tuple(first)), grouped) == first
        other = order_of(replace(kernel, order=shuffled(list(first), 0)), grouped)
        assert sorted(other) == sorted(first)
        assert order_of(replace(kernel, order=tuple(other)), grouped) == other


def test_a_sum_begins_with_a_term_and_is_added_to() -> None:
    plan = with_orders(plan_of("simple_gla"), dict.fromkeys([k.name for k in plan_of("simple_gla").kernels], ()))
    (writes,) = plan.whole
    order = order_of(writes, ())
    assert order.count("d_value") == 2, "one for each term"
    order.remove("d_value")
    early = ("suffix", "decay_to_end", "key_decayed", "d_value", *order)
    text = module_text(derivation_of("simple_gla"), with_orders(plan, {writes.name: early}))
    kernel = text[text.index(f"def {writes.name}(") :]
    begun, added = kernel.index("d_value = _dot(key_decayed, d_S, "), kernel.index("d_value += _dot_tn(scores, d_o, ")
    assert begun < kernel.index("similarity = ") < added < kernel.index("_store(d_v_ptr")
    (node,) = (s.node for s in statements(writes.roots()) if isinstance(s, Compute) and s.node.name == "d_value")
    assert in_parts(node) and "# d_value[t,c] = Σ_m d_S[m,c] key_decayed[t,m] + Σ_j d_o[j,c] scores[j,t]" in kernel


@pytest.mark.interpreter
@pytest.mark.parametrize("chunks", [1, 2], ids=["a state for each chunk", "a state for two"])
@pytest.mark.parametrize("name", NAMES)
def test_an_order_does_not_change_what_is_computed(name: str, chunks: int, tmp_path: Path) -> None:
    plan: Plan = plan_of(name)
    grouped = grouped_inputs(derivation_of(name).spec)
    orders = {k.name: shuffled(order_of(replace(k, order=()), grouped), chunks) for k in plan.kernels}
    text = module_text(derivation_of(name), with_orders(plan, orders))
    assert text != module_text(derivation_of(name), plan)
    path = tmp_path / "ordered.py"
    path.write_text(text, encoding="utf-8")
    module = load_module(path)
    module._Grid.stretch = lambda grid, kernel, axis, *_: chunks * grid.tiles(kernel, axis)[0]
    report = verify_module(module, ["chunk"], 0, 1, backends=("triton",), fail_fast=True, directed=4)
    assert report.ok and report.cases, report.render()
