"""How the drivers of the decay are drawn: by the strength of the decay that they cause, measured on the module."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Generator, Tensor

from .case import Case
from .profile import Profile

Draw = Callable[[Profile, Case, str, Tensor, Generator], Tensor]
_OPEN, _STRONG = 0.0, -20.0


def _times(profile: Profile, name: str, length: int, every: int) -> Tensor:
    """Mask over an input's axes, true at every `every`-th token; all false for a parameter."""
    axes = profile.axes(name)
    hit = (torch.arange(length) % every) == every - 1 if "T" in axes else torch.zeros(1, dtype=torch.bool)
    return hit.reshape([-1 if axis == "T" else 1 for axis in axes]) if "T" in axes else hit


def _mild(profile: Profile, case: Case, name: str, noise: Tensor, generator: Generator) -> Tensor:
    return noise


def _strong(profile: Profile, case: Case, name: str, noise: Tensor, generator: Generator) -> Tensor:
    """A hundred times the usual size; parameters less, since they enter through exponentials that would overflow."""
    return 100 * noise if name in profile.inputs else 10 * noise


def _zero(profile: Profile, case: Case, name: str, noise: Tensor, generator: Generator) -> Tensor:
    return torch.zeros_like(noise)


def _negative_zero(profile: Profile, case: Case, name: str, noise: Tensor, generator: Generator) -> Tensor:
    return torch.full_like(noise, -0.0)


def _weak(profile: Profile, case: Case, name: str, noise: Tensor, generator: Generator) -> Tensor:
    """Log-decays spread over about U(−0.02, 0)."""
    low, high = sorted((profile.level(-0.02), profile.level(-0.001)))
    return low + (high - low) * torch.rand(noise.shape, generator=generator, dtype=noise.dtype)


def _constant(profile: Profile, case: Case, name: str, noise: Tensor, generator: Generator) -> Tensor:
    """The same log-decay `case.log_decay` everywhere."""
    return torch.full_like(noise, profile.level(case.log_decay))


def _every_16th(profile: Profile, case: Case, name: str, noise: Tensor, generator: Generator) -> Tensor:
    """No decay, but `case.log_decay` at every 16th token."""
    keep = torch.full_like(noise, profile.level(_OPEN))
    return torch.where(_times(profile, name, case.T, 16), profile.level(case.log_decay or _STRONG), keep)


def _alternate(profile: Profile, case: Case, name: str, noise: Tensor, generator: Generator) -> Tensor:
    """A random gate, but no decay at every second token."""
    return torch.where(_times(profile, name, case.T, 2), profile.level(_OPEN), noise)


def _one_channel(profile: Profile, case: Case, name: str, noise: Tensor, generator: Generator) -> Tensor:
    """`case.log_decay` in the first entry of the last axis, no decay in the others."""
    gate = torch.full_like(noise, profile.level(_OPEN))
    gate[..., :1] = profile.level(case.log_decay or _STRONG)
    return gate


def _reset(profile: Profile, case: Case, name: str, noise: Tensor, generator: Generator) -> Tensor:
    """A random gate that forgets everything at some tokens (all heads and channels at once)."""
    if profile.reset is None or name not in profile.inputs:
        return noise
    shape = [n if axis in ("B", "T") else 1 for axis, n in zip(profile.axes(name), noise.shape, strict=True)]
    return torch.where(torch.rand(shape, generator=generator) < 0.2, profile.reset, noise)


def _reset_some(profile: Profile, case: Case, name: str, noise: Tensor, generator: Generator) -> Tensor:
    """A random gate with entries that forget, each on its own."""
    if profile.reset is None or name not in profile.inputs:
        return noise
    return torch.where(torch.rand(noise.shape, generator=generator) < 0.1, profile.reset, noise)


GATES: dict[str, Draw] = {
    "mild": _mild,
    "weak": _weak,
    "constant": _constant,
    "strong": _strong,
    "zero": _zero,
    "negative_zero": _negative_zero,
    "alternate": _alternate,
    "every_16th": _every_16th,
    "one_channel": _one_channel,
    "reset": _reset,
    "reset_some": _reset_some,
}
