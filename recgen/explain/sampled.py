"""A mask in numbers: the decays of sampled inputs, and what they leave of each token's write."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recgen.algebra.recurrence import Recurrence

TOKENS, WIDTH, HEADS = 24, 4, 4
PANELS = 3


@dataclass(frozen=True)
class Mask:
    """weights[t, i]: what is left of token i's write in the state after token t; NaN where i > t."""

    title: str
    weights: NDArray[np.float64]


def masks(rec: Recurrence, module: ModuleType) -> list[Mask]:
    """The masks of some heads or channels, whichever differ, for inputs as `sample_inputs` draws them."""
    if not rec.log_decays:
        return [Mask("every head", _mask(np.zeros(TOKENS)))]
    decays = _log_decays(rec, module)
    found: dict[bytes, Mask] = {}
    for title, log in _choices(rec, decays):
        mask = Mask(title, _mask(log))
        found.setdefault(mask.weights.tobytes(), mask)
    return list(found.values())[:PANELS]


def _mask(log: NDArray[np.float64]) -> NDArray[np.float64]:
    """exp(Σ_{i<j≤t} log[j]), each a sum of its own."""
    weights = np.full((len(log), len(log)), np.nan)
    for t in range(len(log)):
        for i in range(t + 1):
            weights[t, i] = np.exp(log[i + 1 : t + 1].sum())
    return weights


def _choices(rec: Recurrence, log: NDArray[np.float64]) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """The log-decays [time, head, m, v] of some heads and channels; those inside a head come first."""
    inside = rec.structure
    vector = all("m" not in rule.axes for rule in rec.states)
    for n in range(PANELS if inside else HEADS):
        m, v = (n if a in inside else 0 for a in "mv")
        names = {"m": f"feature m = {m}", "v": f"{'channel' if vector else 'value channel'} c = {v}"}
        yield ", ".join(names[a] for a in inside) or f"head h = {n}", log[:, 0 if inside else n, m, v]


def _log_decays(rec: Recurrence, module: ModuleType) -> NDArray[np.float64]:
    """The log-decay [time, head, m, v] of the first sequence."""
    values = _values(rec, module)
    total = np.zeros((TOKENS, HEADS, WIDTH, WIDTH))
    for q in rec.log_decays:
        x = values[q.name].double().numpy()
        in_time = x.shape[:2] == (1, TOKENS)  # of the only sequence
        x = x[0] if in_time else x[None]
        if x.ndim - len(q.axes) == 1:  # what has no heads is the same for all
            x = x[:, None]
        index = (slice(None), slice(None), *(slice(WIDTH) if a in q.axes else None for a in "mv"))
        total = total + x[index]
    return total


def _values(rec: Recurrence, module: ModuleType) -> Mapping[str, Any]:
    """The log-decays that the emitted module computes from its sampled inputs, in float64, by name."""
    import torch

    wanted = {"T": TOKENS, "H": HEADS, "K": WIDTH, "V": WIDTH, "D": WIDTH, "M": WIDTH}
    taken = inspect.signature(module.sample_inputs).parameters
    sizes = {name: n for name, n in wanted.items() if name in taken}
    inputs = module.sample_inputs(B=1, seed=0, dtype=torch.float64, **sizes)
    given = {**inputs, "scale": 1.0, "position": torch.arange(TOKENS)[None]}
    with torch.no_grad():
        if rec.stabiliser is not None:  # its decays are relative to a maximum; this is what they are before that
            read = inspect.signature(module._log_weights).parameters
            decay = module._log_weights(*(given[name] for name in read))[0]
            return {q.name: decay for q in rec.log_decays}
        read = inspect.signature(module._token_values).parameters
        found = module._token_values(*(given[name] for name in read))
        names = inspect.signature(module._token_step).parameters
        return dict(zip(names, found if isinstance(found, tuple) else (found,), strict=False))
