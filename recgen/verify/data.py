"""A case becomes tensors: inputs, parameters, initial state, cotangents and offsets, all from the case's seed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from zlib import crc32

import torch
from torch import Generator, Tensor

from .case import Case
from .gates import GATES
from .layouts import LAYOUTS, contiguous
from .profile import Profile


@dataclass(frozen=True)
class Data:
    """Tensors of one case. Everything that may need a gradient is a leaf; `initial` and cotangents are per state."""

    tensors: dict[str, Tensor]
    initial: tuple[Tensor, ...] | None
    output_cotangent: Tensor
    state_cotangents: tuple[Tensor, ...]
    offsets: Tensor | None

    def leaves(self) -> dict[str, Tensor]:
        """Tensors that need a gradient, by input or parameter name and `initial 0`, `initial 1`, …"""
        initial = {f"initial {n}": s for n, s in enumerate(self.initial or ())}
        return {name: x for name, x in {**self.tensors, **initial}.items() if x.requires_grad}

    def map(self, change: Callable[[Tensor], Tensor]) -> Data:
        """The same data with `change` applied to every floating-point tensor; leaves stay leaves."""

        def leaf(x: Tensor) -> Tensor:
            return change(x.detach()).detach().requires_grad_(x.requires_grad)

        return dataclasses.replace(
            self,
            tensors={name: leaf(x) for name, x in self.tensors.items()},
            initial=None if self.initial is None else tuple(leaf(x) for x in self.initial),
            output_cotangent=leaf(self.output_cotangent),
            state_cotangents=tuple(leaf(x) for x in self.state_cotangents),
        )

    def to(self, dtype: torch.dtype) -> Data:
        """Dense copies of the same (already rounded) values in another dtype."""
        return self.map(lambda x: x.cpu().to(dtype, copy=True, memory_format=torch.contiguous_format))

    def double(self) -> Data:
        """The same rounded values in float64, for the truth."""
        return self.to(torch.float64)

    def dense(self) -> Data:
        """The same values and dtypes, every tensor contiguous."""
        return self.map(lambda x: contiguous(x))


def _normal(axes: tuple[str, ...], noise: Tensor) -> Tensor:
    return noise


def _one_hot(axes: tuple[str, ...], noise: Tensor) -> Tensor:
    """One-hot along a key axis, 4097 (thirteen bits: more than TF32 keeps) on tensors without one."""
    if axes[-1] == "V":
        return torch.full_like(noise, 4097.0)
    hot = torch.zeros_like(noise)
    hot[..., :1] = 1
    return hot


VALUES: dict[str, Callable[[tuple[str, ...], Tensor], Tensor]] = {
    "normal": _normal,
    "ones": lambda axes, noise: torch.ones_like(noise),
    "zero": lambda axes, noise: torch.zeros_like(noise),
    "small": lambda axes, noise: 3e-4 * noise,
    "low": lambda axes, noise: noise - 9,
    "lowest": lambda axes, noise: noise - 30,
    "large": lambda axes, noise: 8 * noise,
    "one_hot": _one_hot,
}


def _generator(case: Case, name: str) -> Generator:
    return Generator().manual_seed(crc32(f"{case.seed}/{name}".encode()))


def _noise(case: Case, name: str, shape: tuple[int, ...]) -> Tensor:
    return torch.randn(shape, generator=_generator(case, name), dtype=torch.float64)


def _values(profile: Profile, case: Case, params: dict[str, Tensor]) -> dict[str, Tensor]:
    """Every input and parameter in float64, not yet rounded."""
    letters = profile.letters(case.B, case.T, case.H, case.K, case.V)
    values = {}
    for name in (*profile.inputs, *profile.params):
        axes = profile.axes(name)
        if name in profile.params and (name not in profile.drivers or case.gate == "mild"):
            values[name] = params[name].double()
            continue
        noise = _noise(case, name, tuple(letters[axis] for axis in axes))
        if name in profile.drivers:
            values[name] = GATES[case.gate](profile, case, name, noise, _generator(case, f"gate {name}"))
        else:
            values[name] = VALUES[case.values](axes, noise)
    return values


def _prior(profile: Profile, case: Case) -> tuple[tuple[int, ...], tuple[Tensor, ...]]:
    """Trailing sizes of an output, and a state that a run could have left behind, so that its accumulators agree."""
    before = Case(B=case.sequences, T=3, H=case.H, K=case.K, V=case.V, dtype="float64", seed=case.seed + 1)
    values = _values(profile, before, _sample_params(profile, case))
    with torch.no_grad():
        o, state = profile.naive(values)
    return tuple(o.shape[2:]), state


def _sample_params(profile: Profile, case: Case) -> dict[str, Tensor]:
    return profile.sample(B=1, T=1, H=case.H, K=case.K, V=case.V, seed=case.seed)


def build(profile: Profile, case: Case) -> Data:
    """The tensors of `case`, rounded to its dtypes, laid out as it says, on its device. Deterministic."""
    layout, grad_layout = LAYOUTS[case.layout], LAYOUTS[case.grad_layout]
    tensors, heads = {}, profile.heads(case.H, case.groups)
    for name, value in _values(profile, case, _sample_params(profile, case)).items():
        if name in heads:
            value = value.narrow(profile.axes(name).index("H"), 0, heads[name])
        wide = case.mixed and (name in profile.params or name in profile.drivers)
        rounded = value.to(device=case.device, dtype=torch.float32 if wide else case.torch_dtype)
        placed = layout(rounded) if name in profile.inputs else contiguous(rounded)
        tensors[name] = placed.detach().requires_grad_(name not in case.frozen)
    output_tail, prior = _prior(profile, case)
    prior = tuple(s.to(case.device, case.state_dtype(n)) for n, s in zip(profile.state, prior, strict=True))
    initial = None
    if case.initial:
        wanted = ["initial_state" not in case.frozen and moves for moves in profile.differentiable()]
        initial = tuple(contiguous(s).detach().requires_grad_(w) for s, w in zip(prior, wanted, strict=True))
    offsets = None
    if case.documents is not None:
        ends = torch.tensor([0, *case.documents], dtype=torch.int64).cumsum(0)
        offsets = ends.to(device=case.device, dtype=torch.int32 if case.seed % 2 else torch.int64)
    output_noise = _noise(case, "d output", (case.B, case.T, *output_tail))
    return Data(
        tensors=tensors,
        initial=initial,
        output_cotangent=grad_layout(output_noise.to(case.device, case.torch_dtype)),
        state_cotangents=tuple(
            grad_layout(_noise(case, f"d state {n}", tuple(s.shape)).to(s)) for n, s in enumerate(prior)
        ),
        offsets=offsets,
    )
