"""What is timed at one shape: the operator in each schedule, softmax attention, a copy of the bytes, and the peer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from recgen.bench.clock import Work
from recgen.bench.gpu.peers import Peer
from recgen.bench.gpu.plan import Shape
from recgen.verify.profile import Profile

AUTO, SOFTMAX, FLOOR, PEER = "auto", "softmax", "copy", "fla"
SOFTMAX_WIDTH = 256  # the widest head of torch's fused kernels


@dataclass(frozen=True)
class Contender:
    """One forward pass without gradients, and one forward and backward pass; `ours` where recgen made the kernels."""

    forward: Work
    both: Work
    ours: bool = False


@cache
def profile_of(module: ModuleType) -> Profile:
    """What the module says about itself, measured once."""
    with torch.enable_grad():
        return Profile.of(module)


def draw(module: ModuleType, shape: Shape, device: str, dtype: torch.dtype) -> dict[str, Tensor]:
    """Inputs from N(0, 1), drawn on the device, and parameters at their initial values, by name."""
    profile = profile_of(module)
    sizes = profile.letters(shape.B, shape.T, shape.H, shape.D, shape.D)
    generator = torch.Generator(device).manual_seed(0)
    drawn = {
        name: torch.randn([sizes[axis] for axis in axes], generator=generator, device=device, dtype=dtype)
        for name, axes in profile.inputs.items()
    }
    sample = profile.sample(B=1, T=1, H=shape.H, K=shape.D, V=shape.D)
    return drawn | {name: sample[name].to(device, dtype) for name in profile.params}


def schedules(module: ModuleType) -> tuple[str, ...]:
    """`auto`, and each schedule where there is a choice."""
    return (AUTO, *(module.SCHEDULES if len(module.SCHEDULES) > 1 else ()))


def operator(module: ModuleType, tensors: dict[str, Tensor], schedule: str) -> Contender:
    """The chunk form's kernels in one schedule."""
    leaves = _leaves(tensors)
    options = {"backend": "triton", "schedule": schedule}
    return _contender(lambda: module.chunk(**leaves, **options)[0], list(leaves.values()), ours=True)


def softmax(shape: Shape, device: str, dtype: torch.dtype) -> Contender:
    """Causal softmax attention by torch's fused kernel, in that kernel's own layout."""
    generator = torch.Generator(device).manual_seed(0)
    axes = (shape.B, shape.H, shape.T, shape.D)
    leaves = _leaves({n: torch.randn(axes, generator=generator, device=device, dtype=dtype) for n in "qkv"})
    q, k, v = leaves.values()
    return _contender(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True), [q, k, v])


def peer(function: Callable[..., Any], chosen: Peer, tensors: dict[str, Tensor], scale: float | None) -> Contender:
    """The other library's function on ready values of the same tensors, each in the dtype of the inputs."""
    run, leaves = peer_call(function, chosen, tensors, scale)
    return _contender(run, list(leaves.values()))


def peer_call(
    function: Callable[..., Any], chosen: Peer, tensors: dict[str, Tensor], scale: float | None
) -> tuple[Callable[[], Tensor], dict[str, Tensor]]:
    """What gives the peer's output, and the tensors that it is given. A decay per head stays float32."""
    dtype = next(iter(tensors.values())).dtype
    with torch.no_grad():
        ready = {n: x if x.dim() == 1 else x.to(dtype) for n, x in chosen.tensors(tensors).items()}
    fixed = {n: x for n, x in ready.items() if x.dim() == 1}
    leaves = _leaves({n: x for n, x in ready.items() if x.dim() > 1})

    def run() -> Tensor:
        found = function(**leaves, **fixed, **({"scale": scale} if chosen.scaled else {}), **chosen.options)
        o: Tensor = found[0] if isinstance(found, tuple) else found
        return o

    return run, leaves


def floor(tensors: dict[str, Tensor], output: Sequence[int]) -> Contender:
    """A copy that moves as many bytes as nothing of the kind can avoid, reads and writes counted alike.

    Forward: the inputs and the output. With the backward pass: the inputs twice, the output and its gradient, and the
    gradients of the inputs.
    """
    like = next(iter(tensors.values()))
    inputs = sum(x.numel() * x.element_size() for x in tensors.values())
    out = math.prod(output) * like.element_size()
    return Contender(_copy(inputs + out, like.device), _copy(3 * inputs + 2 * out, like.device))


def _copy(moved: int, device: torch.device) -> Work:
    source = torch.zeros(max(1, moved // 2), dtype=torch.int8, device=device)
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def _leaves(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: x.detach().requires_grad_() for name, x in tensors.items()}


def _contender(run: Callable[[], Tensor], wanted: list[Tensor], ours: bool = False) -> Contender:
    gradients: list[Tensor] = []

    def forward() -> Tensor:
        with torch.no_grad():
            return run()

    def both() -> None:
        output = run()
        if not gradients:
            gradients.append(torch.randn_like(output))
        torch.autograd.grad(output, wanted, gradients[0], allow_unused=True)

    return Contender(forward, both, ours)


def difference(ours: Tensor, theirs: Tensor) -> float:
    """‖ours − theirs‖ / ‖ours‖: whether two contenders compute the same thing."""
    ours, theirs = ours.detach().float(), theirs.detach().float()
    return float(torch.linalg.vector_norm(ours - theirs) / torch.linalg.vector_norm(ours))
