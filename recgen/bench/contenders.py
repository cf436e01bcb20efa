"""What is measured: forward and backward of a generated operator, of softmax attention, and of a token loop.

Every function returns a piece of work without arguments that makes one forward and one backward pass, with the same
random output gradient each time. Sizes are batch B, time T, heads H, key width K, value width V.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from recgen.bench.clock import Work


@dataclass(frozen=True)
class Size:
    """The sizes of one measurement; the defaults are those the project is judged at."""

    B: int = 1
    T: int = 2048
    H: int = 8
    K: int = 64
    V: int = 64

    def at(self, length: int) -> Size:
        """The same sizes at another length."""
        return replace(self, T=length)


def generated(module: ModuleType, size: Size, form: str = "operator", **options: Any) -> Work:
    """A form of an emitted module on its own sample inputs; `options` go to the form as they are."""
    tensors = {
        name: tensor.detach().requires_grad_(tensor.is_floating_point())
        for name, tensor in _sample(module, size).items()
    }
    return _both_ways(lambda: getattr(module, form)(**tensors, **options)[0], list(tensors.values()), size)


def _sample(module: ModuleType, size: Size) -> dict[str, Tensor]:
    """The module's sample inputs; a vector state has as many channels as there are values in all heads."""
    sizes = asdict(size)
    if not any("H" in axes.split() for axes in module.INPUTS.values()):
        sizes = {"B": size.B, "T": size.T, "D": size.H * size.V}
    return module.sample_inputs(**sizes)


def token_loop(module: ModuleType, size: Size) -> Work:
    """The same operator one token after the other: its `naive` form, differentiated by autograd."""
    return generated(module, size, "naive")


def softmax(size: Size, causal: bool = True) -> Work:
    """Softmax attention by torch's fused kernel, in that kernel's own layout."""
    q, k, v = _queries_keys_values(size)
    return _both_ways(
        lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2), [q, k, v], size
    )


def softmax_written_out(size: Size) -> Work:
    """Causal softmax attention as the formula has it, with the T × T matrix of weights in memory."""
    q, k, v = _queries_keys_values(size)
    hidden = torch.ones(size.T, size.T, dtype=torch.bool).triu(1)

    def forward() -> Tensor:
        scores = (q @ k.transpose(-1, -2)) * size.K**-0.5
        return (scores.masked_fill(hidden, -torch.inf).softmax(-1) @ v).transpose(1, 2)

    return _both_ways(forward, [q, k, v], size)


def _queries_keys_values(size: Size) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    widths = (size.K, size.K, size.V)
    q, k, v = (torch.randn(size.B, size.H, size.T, width, generator=generator).requires_grad_() for width in widths)
    return q, k, v


def _both_ways(forward: Callable[[], Tensor], inputs: list[Tensor], size: Size) -> Work:
    generator = torch.Generator().manual_seed(1)
    gradient = torch.randn(size.B, size.T, size.H, size.V, generator=generator)
    wanted = [tensor for tensor in inputs if tensor.requires_grad]

    def work() -> None:
        output = forward()
        torch.autograd.grad(output, wanted, gradient.view_as(output))

    return work
