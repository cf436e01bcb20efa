"""Peak memory, counted on code whose peak is known."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from recgen.bench.memory import growth, peak_bytes

FLOAT = 4


def test_a_temporary_counts_while_it_lives() -> None:
    def work() -> None:
        first = torch.ones(1000)
        del first
        second = torch.ones(1000)
        third = second + 1
        del second, third

    assert peak_bytes(work) == 2 * 1000 * FLOAT


def test_views_and_what_was_there_before_do_not_count() -> None:
    before = torch.ones(1000)

    def work() -> Tensor:
        return before[:10].view(2, 5).mT + 1

    assert peak_bytes(work) == 10 * FLOAT


def test_the_backward_pass_is_counted() -> None:
    x = torch.ones(1000, requires_grad=True)

    def work() -> None:
        torch.autograd.grad((x.exp() * 2).sum(), x)

    assert peak_bytes(work) >= 2 * 1000 * FLOAT


def test_work_inside_an_autograd_function_is_counted() -> None:
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: Tensor) -> Tensor:
            return torch.cat([x, x])[: len(x)] * 2

        @staticmethod
        def backward(ctx: object, gradient: Tensor) -> Tensor:
            return torch.cat([gradient] * 5)[: len(gradient)] * 2

    x = torch.ones(1000, requires_grad=True)
    assert peak_bytes(lambda: torch.autograd.grad(Doubled.apply(x).sum(), x)) >= 5 * 1000 * FLOAT


def test_work_inside_an_emitted_operator_is_counted() -> None:
    """torch takes an operator of torch.library as a whole; what its Python function allocates counts all the same."""
    library = torch.library.Library("recgen", "FRAGMENT")
    library.define("counted_here(Tensor x) -> Tensor")
    library.impl("counted_here", lambda x: torch.cat([x] * 5)[: len(x)] * 2, "CompositeExplicitAutograd")
    x = torch.ones(1000)
    assert peak_bytes(lambda: torch.ops.recgen.counted_here(x)) == 6 * 1000 * FLOAT


def test_growth_is_the_exponent() -> None:
    lengths = [100, 200, 400]
    assert growth(lengths, [3.0 * n for n in lengths]) == pytest.approx(1)
    assert growth(lengths, [0.1 * n**2 for n in lengths]) == pytest.approx(2)
    with pytest.raises(ValueError, match="at least two lengths"):
        growth([100], [1.0])
