"""Inputs, parameters and states of any operator, drawn from what its module says of them and not from its name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import ModuleType

import torch
from torch import Tensor

from tests.generated.catalogue import axes, profile

GUARD = 64
COUNTED = ("m", "position")
"""What a state counts on without end: float64 always."""

Values = dict[str, Tensor]


def guarded(x: Tensor) -> Tensor:
    """A contiguous copy that lies inside a longer buffer of NaN."""
    buffer = x.new_full((x.numel() + 2 * GUARD,), math.nan)
    view = buffer[GUARD : GUARD + x.numel()].view(x.shape)
    view.copy_(x)
    return view


def draw(
    module: ModuleType,
    *,
    B: int = 1,
    T: int = 70,
    H: int = 2,
    K: int = 16,
    V: int = 8,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
    log_decay: float | Tensor | None = None,
) -> Values:
    """Normal inputs, and parameters spread around their initial values.

    log_decay: what every driver of the decay is set to, as the log-decay that it causes where all are set alike;
    a number, a tensor over batch, time and heads, or one that broadcasts to the drivers.
    """
    generator = torch.Generator().manual_seed(seed)
    K += K % 2 if "rotation" in module.SPEC else 0  # channels turn in pairs
    sizes = profile(module).letters(B, T, H, K, V)
    values = {
        name: torch.randn([sizes[a] for a in letters], generator=generator, dtype=torch.float64)
        for name, letters in axes(module).items()
    }
    initial = profile(module).sample(B=1, T=1, H=H, K=K, V=V, seed=seed, dtype=torch.float64)
    values |= {name: initial[name] + values[name] / 2 for name in module.PARAMS}
    if log_decay is not None:
        for name in profile(module).drivers:
            values[name] = _spread(levels(module, log_decay), values[name].shape)
    return {name: guarded(x.to(dtype)) for name, x in values.items()}


def _spread(x: Tensor, shape: torch.Size) -> Tensor:
    """Expanded to `shape`; three axes are batch, time and heads."""
    return x.reshape(x.shape + (1,) * (len(shape) - 3)).expand(shape) if x.dim() == 3 else x.expand(shape)


def levels(module: ModuleType, log_decay: float | Tensor) -> Tensor:
    """The driver values with these log-decays ≤ 0, to a thousandth; 0 is exact."""
    wanted = torch.as_tensor(log_decay, dtype=torch.float64)
    found = [profile(module).level(x) for x in wanted.flatten().tolist()]
    return torch.tensor(found, dtype=torch.float64).reshape(wanted.shape)


def without_decay(module: ModuleType, values: Values, level: float | None = None) -> Values:
    """The same with every driver at `level` (default: one that decays nothing)."""
    level = profile(module).level(0.0) if level is None else level
    return {n: torch.full_like(x, level) if n in profile(module).drivers else x for n, x in values.items()}


def weak(module: ModuleType, **sizes: int) -> Values:
    """Log-decays spread over (−0.02, 0), so that a state of long ago still counts."""
    values = draw(module, **{"T": 70, "H": 2, "K": 16, "V": 8, **sizes})
    low, high = levels(module, torch.tensor([-0.02, -0.001])).tolist() if profile(module).drivers else (0.0, 0.0)
    generator = torch.Generator().manual_seed(5)
    for name in profile(module).drivers:
        values[name].copy_(low + (high - low) * torch.rand(values[name].shape, generator=generator))
    return values


def empty_state(module: ModuleType, values: Values) -> Values:
    """What a sequence starts from when it is given no state."""
    _, state = module.naive(
        **{n: x[:, :0] if n in module.INPUTS else x for n, x in values.items()}, output_final_state=True
    )
    return state._asdict()


def value_inputs(module: ModuleType) -> list[str]:
    """The inputs along the value channels that drive no decay: what is written into the state."""
    return [
        n for n, a in axes(module).items() if n in module.INPUTS and a[-1] in "VD" and n not in profile(module).drivers
    ]


def state_dtype(values: Mapping[str, Tensor], name: str) -> torch.dtype:
    """The dtype that the contract gives an entry of the state: the first input decides but for what is counted."""
    wide = name in COUNTED or next(iter(values.values())).dtype == torch.float64
    return torch.float64 if wide else torch.float32


def prior_state(module: ModuleType, values: Mapping[str, Tensor], N: int) -> Values:
    """What `naive` leaves behind of N other sequences of three tokens, in float64: entries that agree."""
    sizes = {
        letter: n
        for name, letters in axes(module).items()
        for letter, n in zip(letters, values[name].shape, strict=True)
    }
    generator = torch.Generator().manual_seed(7)
    before = {}
    for name, letters in axes(module).items():
        shape = [{**sizes, "B": N, "T": 3}[a] for a in letters]
        is_input = name in module.INPUTS
        before[name] = torch.randn(shape, generator=generator).double() if is_input else values[name].detach().double()
    with torch.no_grad():
        return module.naive(**before, output_final_state=True)[1]._asdict()


def draw_state(
    module: ModuleType, values: Mapping[str, Tensor], *, N: int | None = None, seed: int = 1, size: float = 1.0
) -> Values:
    """A random state of the dtype that the contract gives it, for N sequences (default: the batch).

    S is normal, times `size`; z is positive, as sums of features are; what else is carried comes from a run. Where
    nothing is carried it is empty.
    """
    if not module.STATE:
        return {}
    generator = torch.Generator().manual_seed(seed)
    first = next(iter(values.values()))
    state = prior_state(module, values, first.shape[0] if N is None else N)
    for name in ("S", "z"):
        if name in state:
            noise = size * torch.randn(state[name].shape, generator=generator, dtype=torch.float64)
            state[name] = noise if name == "S" else noise.abs() + 1
    return {name: guarded(x.to(state_dtype(values, name))) for name, x in state.items()}
