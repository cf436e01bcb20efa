"""Printed activations are accurate over the whole range, with limits at infinity, and compile for every GPU."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from sympy import Expr, Piecewise, S, exp, log, tanh

from recgen.algebra.activations import Elu, LogSigmoid, Relu, Sigmoid, Softplus
from recgen.algebra.calculus import derivative
from recgen.algebra.functions import LANGUAGE
from recgen.algebra.precise import value
from recgen.emit.torch_expr import TorchPrinter
from recgen.emit.triton_expr import TritonPrinter
from tests.algebra.expressions import NAMED_CASES, x, y
from tests.emit.printed import NAMES, run_triton, torch_module, triton_source

SIZES = [1e-30, 1e-8, 1e-4, 0.01, 0.3, 0.9, 1.1, 5.0, 19.0, 21.0, 39.0, 41.0, 60.0, 80.0, 85.0, 87.0]
WHOLE_RANGE = [-size for size in SIZES] + SIZES
ABOVE_MINUS_ONE = [0.0, -1e-30, -1e-8, -1e-4, -0.01, -0.3, -0.9, -0.999] + SIZES
ACTIVATIONS = ("exp", "expm1", "log1p", "tanh", "sigmoid", "logsigmoid", "softplus", "relu", "elu", "silu")


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 4e-15)], ids=str)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_accurate_over_the_whole_range(
    name: str, dtype: torch.dtype, tolerance: float, tmp_path: Path
) -> None:
    tree = LANGUAGE[name].build(x)
    points = torch.tensor(ABOVE_MINUS_ONE if name == "log1p" else WHOLE_RANGE, dtype=dtype)
    exact = torch.tensor([float(value(tree, {x: point})) for point in points.tolist()], dtype=torch.float64)
    module = torch_module(tmp_path / "torch_range.py", [TorchPrinter(NAMES).text(tree)])
    in_torch = module.e0(points, points, points, points).double()
    in_triton = torch.cat(run_in_eights(tmp_path, TritonPrinter(NAMES).text(tree), points)).double()
    torch.testing.assert_close(in_torch, exact, rtol=tolerance, atol=1e-38)
    torch.testing.assert_close(in_triton, exact, rtol=tolerance, atol=1e-38)


def run_in_eights(folder: Path, text: str, points: torch.Tensor) -> Sequence[torch.Tensor]:
    """The text in Triton at a multiple of eight points, all symbols at the same value."""
    return [
        run_triton(folder / f"triton_range_{i}.py", [text], part.repeat(4, 1))[0]
        for i, part in enumerate(points.split(8))
    ]


LIMITS = [
    (LogSigmoid(x) / 16, -math.inf, 0.0),
    (Softplus(x), 0.0, math.inf),
    (Sigmoid(x), 0.0, 1.0),
    (Elu(x), -1.0, math.inf),
    (Elu(x) + 1, 0.0, math.inf),
    (tanh(x), -1.0, 1.0),
    (exp(x), 0.0, math.inf),
    (1 - exp(LogSigmoid(x) / 16), 1.0, 0.0),
    (derivative(LogSigmoid(x) / 16, x), 1 / 16, 0.0),
    (derivative(Softplus(x), x), 0.0, 1.0),
    (derivative(Elu(x), x), 0.0, 1.0),
    (derivative(tanh(x), x), 0.0, 0.0),
    (derivative(log(1 + exp(x)), x), 0.0, 1.0),
    (derivative(1 / (1 + exp(-x)), x), 0.0, 0.0),
    (derivative(Piecewise((x, x > 0), (exp(x) - 1, True)), x), 0.0, 1.0),
]


@pytest.mark.parametrize(("tree", "low", "high"), LIMITS, ids=[str(tree) for tree, _, _ in LIMITS])
def test_infinite_arguments_give_the_limit(tree: Expr, low: float, high: float, tmp_path: Path) -> None:
    ends = torch.tensor([-math.inf, math.inf] * 4, dtype=torch.float32)
    expected = torch.tensor([low, high] * 4)
    module = torch_module(tmp_path / "torch_limits.py", [TorchPrinter(NAMES).text(tree)])
    torch.testing.assert_close(module.e0(ends, ends, ends, ends), expected)
    (found,) = run_triton(tmp_path / "triton_limits.py", [TritonPrinter(NAMES).text(tree)], ends.repeat(4, 1))
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    "tree", [Elu(x), Relu(x), Elu(x) + 1, tanh(x), Softplus(x), LogSigmoid(x), LANGUAGE["max"].build(x, S(0))], ids=str
)
def test_nan_stays_nan(tree: Expr, tmp_path: Path) -> None:
    nan = torch.full((4, 8), math.nan)
    module = torch_module(tmp_path / "torch_nan.py", [TorchPrinter(NAMES).text(tree)])
    assert module.e0(*nan).isnan().all()
    (found,) = run_triton(tmp_path / "triton_nan.py", [TritonPrinter(NAMES).text(tree)], nan)
    assert found.isnan().all()


def test_autograd_through_the_torch_text_is_the_derivative(tmp_path: Path) -> None:
    trees = [
        *(LANGUAGE[name].build(x) for name in ("abs", "relu", "elu", "logsigmoid", "softplus", "tanh", "silu")),
        Elu(x) + 1,
        LANGUAGE["max"].build(x, S(0)),
        LANGUAGE["min"].build(x, S(0)),
        LANGUAGE["max"].build(x, y),
        LANGUAGE["min"].build(x, y, S(1)),
        Piecewise((x + 1, x > 0), (exp(x), True)),
    ]
    printer = TorchPrinter(NAMES)
    texts = [printer.text(tree) for tree in trees] + [printer.text(derivative(tree, x)) for tree in trees]
    module = torch_module(tmp_path / "torch_gradients.py", texts)
    points = torch.tensor([-200.0, -1.0, 0.0, 1.0, 2.0, 200.0], dtype=torch.float64)
    others = torch.tensor([-200.0, 0.0, 0.0, 3.0, 2.0, 1.0], dtype=torch.float64)
    for i, tree in enumerate(trees):
        at = points.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(getattr(module, f"e{i}")(at, others, at, at).sum(), at)
        slope = torch.as_tensor(getattr(module, f"e{i + len(trees)}")(points, others, points, points))
        torch.testing.assert_close(gradient, slope.expand(6), msg=lambda text, tree=tree: f"{tree}: {text}")


@pytest.mark.offline
def test_printed_kernels_compile_for_every_target_and_stay_in_float32(tmp_path: Path) -> None:
    activations = [LANGUAGE[name].build(x) for name in LANGUAGE if LANGUAGE[name].arity == (1, 1)]
    groups = [activations, [*NAMED_CASES], [derivative(tree, x) for tree in [*activations, *NAMED_CASES]]]
    printer = TritonPrinter(NAMES)
    sums = ["\n        + ".join(f"({printer.text(tree)})" for tree in group) for group in groups]
    kernels = tmp_path / "kernels.py"
    kernels.write_text(triton_source(sums, "float32"))
    environment = {name: text for name, text in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path / "cache")
    worker = Path(__file__).with_name("offline_expressions.py")
    done = subprocess.run([sys.executable, worker, kernels], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {target: sum(kernels.values()) for target, kernels in found.items()} == dict.fromkeys(found, 0)
    assert set(found) == {"sm_80", "sm_90", "sm_100", "gfx942"}
