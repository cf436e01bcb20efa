"""Printed expressions mean exactly the tree they come from, for torch and for Triton, and read well."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from sympy import Expr, Piecewise, Rational, S, Symbol, cos, exp, log, sin, sqrt, tanh

from recgen.algebra.activations import Elu, LogSigmoid, Relu, Sigmoid, Silu, Softplus
from recgen.algebra.calculus import derivative
from recgen.algebra.functions import LANGUAGE
from recgen.algebra.precise import value
from recgen.emit.python_expr import PythonPrinter
from recgen.emit.torch_expr import TorchPrinter
from recgen.emit.triton_expr import TritonPrinter
from tests.algebra.expressions import NAMED_CASES, SYMBOLS, p, q, random_expression, random_point, x, y
from tests.emit.printed import NAMES, run_triton, torch_module

K, H = Symbol("K", integer=True, positive=True), Symbol("H", integer=True, positive=True)
h = Symbol("h", integer=True, nonnegative=True)
g, w = Symbol("g", real=True), Symbol("w", real=True)

POINTS = [random_point(random.Random(seed)) for seed in range(8)]


@pytest.fixture(scope="module")
def trees() -> list[Expr]:
    """The named cases and 200 random trees of at least two symbols."""
    draw = random.Random(20)
    drawn: list[Expr] = []
    while len(drawn) < 200:
        tree = random_expression(draw)
        if len(tree.free_symbols) > 1:
            drawn.append(tree)
    return [*NAMED_CASES, *drawn]


def worst_error(trees: Sequence[Expr], found: Sequence[Sequence[float]]) -> tuple[float, Expr]:
    """The greatest error over all trees and points, relative to values above 1, and its tree."""
    worst = (0.0, S.Zero)
    for tree, values in zip(trees, found, strict=True):
        for point, got in zip(POINTS, values, strict=True):
            exact = float(value(tree, point))
            error = abs(got - exact) / max(1.0, abs(exact))
            worst = max(worst, (error if math.isfinite(error) else math.inf, tree), key=lambda pair: pair[0])
    return worst


def test_torch_text_means_its_tree_in_the_dtype_of_its_tensors(trees: list[Expr], tmp_path: Path) -> None:
    printer = TorchPrinter(NAMES)
    module = torch_module(tmp_path / "torch_texts.py", [printer.text(tree) for tree in trees])
    inputs = [torch.tensor([point[symbol] for point in POINTS], dtype=torch.float64) for symbol in SYMBOLS]
    results = [getattr(module, f"e{i}")(*inputs) for i in range(len(trees))]
    found = [torch.as_tensor(result, dtype=torch.float64).expand(8).tolist() for result in results]
    error, tree = worst_error(trees, found)
    assert error < 1e-12, f"{tree} printed as {printer.text(tree)} is off by {error}"
    for dtype in (torch.float32, torch.float64):
        results = [getattr(module, f"e{i}")(*(value.to(dtype) for value in inputs)) for i in range(len(trees))]
        assert {result.dtype for result in results if isinstance(result, torch.Tensor)} == {dtype}


@pytest.mark.interpreter
def test_triton_text_means_its_tree(trees: list[Expr], tmp_path: Path) -> None:
    printer = TritonPrinter(NAMES)
    inputs = torch.tensor([[point[symbol] for point in POINTS] for symbol in SYMBOLS], dtype=torch.float64)
    found = run_triton(tmp_path / "triton_texts.py", [printer.text(tree) for tree in trees], inputs)
    error, tree = worst_error(trees, [values.tolist() for values in found])
    assert error < 1e-12, f"{tree} printed as {printer.text(tree)} is off by {error}"


@pytest.mark.parametrize(
    ("tree", "torch_text", "triton_text"),
    [
        (LogSigmoid(g) / 16, "F.logsigmoid(g) / 16", "_logsigmoid(g) / 16"),
        (Elu(x) + 1, "torch.exp(x.clamp(max=0)) + torch.relu(x)", "tl.exp(_minimum(x, 0.0)) + _maximum(x, 0.0)"),
        (log(1 - 2 ** (-5 - h)), "torch.log1p(-torch.exp2(-h - 5))", "_log1p(-tl.exp2(-h - 5))"),
        (-(2 ** (-8 * (h + 1) / H)), "-torch.exp2(-8 * (h + 1) / H)", "-tl.exp2(-8 * (h + 1) / H)"),
        (-exp(w), "-torch.exp(w)", "-tl.exp(w)"),
        (1 - exp(g), "-torch.expm1(g)", "-_expm1(g)"),
        (1 - Sigmoid(g), "torch.sigmoid(-g)", "tl.sigmoid(-g)"),
        (-Sigmoid(g) / 10, "-0.1 * torch.sigmoid(g)", "-0.1 * tl.sigmoid(g)"),
        (Softplus(g + w), "F.softplus(g + w, threshold=40)", "_softplus(g + w)"),
        (log(1 + exp(g)), "F.softplus(g, threshold=40)", "_softplus(g)"),
        (log(Sigmoid(g)), "F.logsigmoid(g)", "_logsigmoid(g)"),
        (x**2, "x ** 2", "x * x"),
        (-(x**2) * y, "-(x ** 2) * y", "-(x * x) * y"),
        ((x + y) ** 4, "(x + y) ** 4", "_power(x + y, 4)"),
        (x / (p * q), "x / (p * q)", "x / (p * q)"),
        (2 * x / 3 - 1, "2 * x / 3 - 1", "2 * x / 3 - 1"),
        (1 - x, "1 - x", "1 - x"),
        (Silu(x) + Relu(y), "torch.relu(y) + F.silu(x)", "_maximum(y, 0.0) + _silu(x)"),
        (Piecewise((x, x > 0), (exp(x), True)), "torch.where(x > 0, x, torch.exp(x.clamp(max=0)))",
         "tl.where(x > 0, x, tl.exp(_minimum(x, 0.0)))"),
        (derivative(Relu(x), x), "(x > 0).to(x.dtype)", "tl.where(x > 0, 1.0, 0.0)"),
        (LANGUAGE["max"].build(S(-1), LANGUAGE["min"].build(x, S(1))), "x.clamp(-1, 1)",
         "_maximum(_minimum(x, 1.0), -1.0)"),
    ],
    ids=str,
)  # fmt: skip
def test_text_reads_as_a_person_would_write_it(tree: Expr, torch_text: str, triton_text: str) -> None:
    names = {symbol: symbol.name for symbol in (x, y, p, q, g, w, h, H)}
    assert TorchPrinter(names, scalars={H}).text(tree) == torch_text
    assert TritonPrinter(names).text(tree) == triton_text


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        (K ** Rational(-1, 2), "K ** -0.5"),
        (x * K ** Rational(-1, 4), "K ** -0.25 * x"),
        (log(Rational(31, 32)), "math.log(0.96875)"),
        (exp(-x / sqrt(K)), "torch.exp(-(K ** -0.5) * x)"),
        (tanh(K) * sin(x) * cos(H), "math.cos(H) * math.tanh(K) * torch.sin(x)"),
        (log(K + 1), "math.log1p(K)"),
        (10000 ** (-2 * x / K), "10000 ** (-2 * x / K)"),
        (LANGUAGE["max"].build(x, K), "x.clamp(min=K)"),
        (LANGUAGE["max"].build(H, K), "max(H, K)"),
        (Piecewise((x, K > 8), (y, True)), "x if K > 8 else y"),
    ],
    ids=str,
)
def test_what_has_no_tensor_in_it_is_python_arithmetic(tree: Expr, text: str) -> None:
    names = {symbol: symbol.name for symbol in (x, y, K, H)}
    assert TorchPrinter(names, scalars={K, H}).text(tree) == text


def test_a_name_that_is_an_expression_is_bracketed_where_it_must_be() -> None:
    printer = TorchPrinter({x: "g[..., None]", y: "a - b", p: "p", q: "q"})
    assert printer.text(x * y - y) == "g[..., None] * (a - b) - (a - b)"


def test_the_triton_printer_records_the_helpers_it_needs() -> None:
    printer = TritonPrinter(NAMES)
    printer.text(x + exp(y))
    assert printer.helpers == set()
    printer.text(Softplus(x))
    assert printer.helpers == {"_softplus", "_maximum", "_log1p"}
    printer.text(tanh(x) ** 3)
    assert printer.helpers == {"_softplus", "_maximum", "_log1p", "_tanh", "_expm1", "_power"}


def test_a_symbol_without_a_name_and_an_unknown_function_are_refused() -> None:
    with pytest.raises(KeyError):
        TorchPrinter({}).text(x)
    from sympy import gamma

    for printer in (TorchPrinter(NAMES), TritonPrinter(NAMES)):
        with pytest.raises(NotImplementedError, match="gamma"):
            printer.text(gamma(x))


def test_a_choice_of_plain_numbers_is_a_conditional_expression() -> None:
    text = PythonPrinter({K: "K"}).text(Piecewise((1, K > 64), (2, K > 8), (3, True)))
    assert [eval(text, {"K": size}) for size in (65, 9, 8)] == [1, 2, 3]
