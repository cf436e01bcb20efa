"""Costs are counted on programs; here they are compared with what torch counts while the forms run."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import sympy
import torch
from torch.utils.flop_counter import FlopCounterMode

import recgen
from recgen.explain.costs import WIDTH, Form, costs
from recgen.explain.count import ALL_LEVELS, LEVELS, C, T, operations
from recgen.explain.document import explained
from recgen.spec.model import SIZES
from tests.explain.conftest import Made

GENERATED = Path(__file__).parents[2] / "generated"
Operator = Callable[[str], Made]


def form(made: Made, name: str) -> Form:
    (found,) = [f for f in costs(*made).forms if f.name.split(" (")[0] == name]
    return found


def at(expr: sympy.Expr, size: int, length: int) -> float:
    sizes = {C: size, T: length, SIZES["K"]: 6, SIZES["V"]: 5}
    levels = {LEVELS: sympy.log(size, 2), ALL_LEVELS: sympy.log(length, 2)}
    return float(expr.xreplace(levels).xreplace({s: sympy.Integer(n) for s, n in sizes.items()}))


def multiplied(name: str, function: str, length: int, size: int) -> float:
    """What torch counts, per token and head, while a function of the module runs on one sequence."""
    module = recgen.load_file(GENERATED / f"{name}.py")
    heads = 3
    given = module.sample_inputs(B=1, T=length, H=heads, K=6, V=5)
    wide = {"N": 1, "H": heads, "K": 6, "V": 5, "M": 6}
    given |= {n: torch.zeros(*(wide[a] for a in axes.split())) for n, axes in module.STATE.items()}
    given |= {f"d_{n}": given[n] for n in module.STATE} | {"d_o": torch.zeros(1, length, heads, 5)}
    given |= {"position": torch.arange(length)[None], "scale": 1.0, "size": size, "o": torch.zeros(1, length, heads, 5)}
    called = getattr(module, function)
    with FlopCounterMode(display=False) as counter:
        called(*(given[argument] for argument in inspect.signature(called).parameters))
    return counter.get_total_flops() / (heads * length)


@pytest.mark.parametrize("name", ["gla", "simple_gla", "gla_outer", "rwkv6", "linear_attention", "retnet_rotary"])
def test_products_are_those_that_torch_multiplies(name: str, operator: Operator) -> None:
    made = operator(name)
    for which, size, function in (
        ("chunk", 16, "_segment_forward"),
        ("parallel", 64, "_segment_forward"),
        ("chunk, gradient", 16, "_segment_backward"),
    ):
        counted = at(form(made, which).count.products, size, 64)
        assert multiplied(name, function, 64, size) == pytest.approx(counted, rel=1e-9), which


def test_products_where_every_token_reads_the_total(operator: Operator) -> None:
    made, name = operator("linear_attention_global"), "linear_attention_global"
    for which, size, function in (("chunk", 16, "_chunk_forward_torch"), ("parallel", 64, "_parallel_torch")):
        counted = at(form(made, which).count.products, size, 64)
        assert multiplied(name, function, 64, size) == pytest.approx(counted, rel=1e-9), which


def test_everything_else_is_counted_where_it_is_computed(operator: Operator) -> None:
    """A step of simple_gla: the decay times S, the write, the read and their sums take K V each; ℓ is one number."""
    K, V = SIZES["K"], SIZES["V"]
    step = form(operator("simple_gla"), "step").count
    scaled, partial_sums, gate = K, V, 2
    assert step.products == 0
    assert sympy.expand(step.others - (4 * K * V + scaled + partial_sums + gate)) == 0


def test_operations_are_counted_on_the_axes_that_they_join() -> None:
    x, y = sympy.symbols("x y", real=True)
    K, V = SIZES["K"], SIZES["V"]

    def counted(expr: sympy.Expr) -> sympy.Expr:
        return sympy.expand(operations(expr, {x: "m", y: "mv"}, {"m": K, "v": V}.__getitem__))

    assert counted(sympy.exp(x) * y) == K + K * V
    assert counted(2 * x * y) == K + K * V, "what is narrow is multiplied first"
    assert counted(sympy.Piecewise((x, x > 0), (2 * x, True))) == 3 * K, "a comparison, a product and a choice"


def test_one_form_keeps_the_state_and_another_all_pairs(operator: Operator) -> None:
    K, V = SIZES["K"], SIZES["V"]
    kept = {f.name: f.kept for f in costs(*operator("gla")).forms}
    assert kept["naive"] == kept["step"] == K * V and kept["recurrent"] == K * V / T
    assert kept["parallel"].free_symbols == {T}, "a row of every matrix of pairs"


@pytest.mark.parametrize(
    ("name", "forward", "backward"),
    [
        ("retnet", "0", "0"),
        ("gla", "0", "K*V/C + K"),
        ("simple_gla", "0", "K*V/C + 2"),
        ("linear_attention", "1", "1"),
        ("mlstm", "1", "K*V/C + K/C + 4"),
        ("full_gate", "2*K*V/C", "3*K*V/C + 2*K"),
        ("linear_attention_global", "(K*V + K)/T + 1", "(K*V + K)/T + 1"),
    ],
)
def test_the_chunkwise_form_keeps_what_its_kernels_store(
    name: str, forward: str, backward: str, operator: Operator
) -> None:
    """No state where no decay needs its gradient, a row of the decay's where two kernels make it, and so on."""
    sizes = {"C": C, "T": T, "K": SIZES["K"], "V": SIZES["V"]}
    for which, expected in (("chunk", forward), ("chunk, gradient", backward)):
        kept = form(operator(name), which).kept
        assert sympy.expand(kept - sympy.sympify(expected, locals=sizes)) == 0, which


@pytest.mark.parametrize("name", ["gla", "mlstm", "mamba", "rwkv6", "performer"])
def test_what_is_kept_has_the_names_of_the_module(name: str, operator: Operator) -> None:
    code = (GENERATED / f"{name}.py").read_text(encoding="utf-8")
    said = form(operator(name), "chunk, gradient").meaning
    for part in said.replace(" and ", ", ").replace("; ", ", ").split(", "):
        word = f"{part.split()[0]}_edges" if part.endswith("edges of chunks") else part
        assert word == "the log-decay of chunks" or re.search(rf"\b{word} = ", code), word


def test_every_operator_has_costs(operator: Operator) -> None:
    """Wide feature maps, vector states and scans too: every size is known."""
    for name in ("based", "hedgehog", "s4d", "mamba", "rwkv4", "mlstm", "linear_attention_global"):
        found = costs(*operator(name))
        assert all(found.number(f.count.products + f.count.others) > WIDTH for f in found.forms), name


def test_the_page_gives_them_as_formulas_and_in_numbers(operator: Operator) -> None:
    text = explained(*operator("gla")).text()
    section = text[text.index("Costs\n-----") : text.index("Proof\n-----")]
    assert "4 K V + 2 C K log₂ C + 2 C V" in section
    assert "for K = V = 64, C = 16, T = 4,096" in section
    assert "K V/C + K: S at edges of chunks; d_log_decay_part" in section
