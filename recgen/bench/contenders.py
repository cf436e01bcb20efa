"""What is measured: forward and backward of a generated operator, of softmax attention, of a token loop and of another
library's function, and one more token of the first two.

What is trained is a `Passes`: work without arguments that makes one forward and one backward pass, or each of the two
alone, with the same random output gradient each time. Sizes are batch B, time T, heads H, key width K, value width V.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
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


@dataclass(frozen=True)
class Place:
    """Where tensors lie, and in which dtype."""

    device: str = "cpu"
    dtype: torch.dtype = torch.float32


CPU = Place()


@dataclass
class Passes:
    """The passes of one contender. `backward` needs the `forward` before it, and uses it up."""

    run: Callable[[], Tensor]
    inputs: list[Tensor]
    _output: Tensor | None = field(default=None, init=False)
    _gradient: Tensor | None = field(default=None, init=False)

    def forward(self) -> None:
        """The output, with what a backward pass needs."""
        self._output = self.run()

    def backward(self) -> None:
        """The gradients of all inputs that have one."""
        output, self._output = self._output, None
        assert output is not None
        if self._gradient is None:
            generator = torch.Generator().manual_seed(1)
            self._gradient = torch.randn(output.shape, generator=generator).to(output)
        wanted = [tensor for tensor in self.inputs if tensor.requires_grad]
        torch.autograd.grad(output, wanted, self._gradient, allow_unused=True)

    def __call__(self) -> None:
        self.forward()
        self.backward()


def generated(module: ModuleType, size: Size, form: str = "operator", place: Place = CPU, **options: Any) -> Passes:
    """A form of an emitted module on its own sample inputs; `options` go to the form as they are."""
    tensors = {
        name: tensor.detach().requires_grad_(tensor.is_floating_point())
        for name, tensor in sample(module, size, place).items()
    }
    return Passes(lambda: getattr(module, form)(**tensors, **options)[0], list(tensors.values()))


def sample(module: ModuleType, size: Size, place: Place = CPU) -> dict[str, Tensor]:
    """The module's sample inputs; a vector state has as many channels as there are values in all heads."""
    sizes = asdict(size)
    if not any("H" in axes.split() for axes in module.INPUTS.values()):
        sizes = {"B": size.B, "T": size.T, "D": size.H * size.V}
    drawn: dict[str, Tensor] = module.sample_inputs(**sizes, **asdict(place))
    return drawn


def token_loop(module: ModuleType, size: Size, place: Place = CPU) -> Passes:
    """The same operator one token after the other: its `naive` form, differentiated by autograd."""
    return generated(module, size, "naive", place)


def softmax(size: Size, causal: bool = True, place: Place = CPU) -> Passes:
    """Softmax attention by torch's fused kernel, in that kernel's own layout."""
    q, k, v = _queries_keys_values(size, place)
    return Passes(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2), [q, k, v])


def step(module: ModuleType, size: Size, place: Place = CPU) -> Work:
    """One more token of an emitted operator, from a state that a few tokens have left."""
    inputs = sample(module, size.at(8), place)
    with torch.no_grad():
        _, state = module.operator(**inputs, output_final_state=True)
    token = {
        name: x.select(module.INPUTS[name].split().index("T"), -1) if name in module.INPUTS else x
        for name, x in inputs.items()
    }

    @torch.no_grad()
    def work() -> Any:
        return module.step(**token, state=state)

    return work


def attend(size: Size, position: int, place: Place = CPU) -> Work:
    """One more token of softmax attention, which reads the keys and values of all those before it."""
    shapes = ((1, size.K), (position, size.K), (position, size.V))
    made = (torch.randn(size.B, size.H, *shape, **asdict(place)) for shape in shapes)
    query, keys, values = made

    @torch.no_grad()
    def work() -> Any:
        return F.scaled_dot_product_attention(query, keys, values)

    return work


def softmax_written_out(size: Size) -> Passes:
    """Causal softmax attention as the formula has it, with the T × T matrix of weights in memory."""
    q, k, v = _queries_keys_values(size)
    hidden = torch.ones(size.T, size.T, dtype=torch.bool).triu(1)

    def forward() -> Tensor:
        scores = (q @ k.transpose(-1, -2)) * size.K**-0.5
        o: Tensor = scores.masked_fill(hidden, -torch.inf).softmax(-1) @ v
        return o.transpose(1, 2)

    return Passes(forward, [q, k, v])


def _queries_keys_values(size: Size, place: Place = CPU) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = ((size.B, size.H, size.T, width) for width in (size.K, size.K, size.V))
    q, k, v = (torch.randn(shape, generator=generator).to(**asdict(place)).requires_grad_() for shape in shapes)
    return q, k, v
