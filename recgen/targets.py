"""The GPUs that kernels are compiled for without being there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A GPU by its architecture. shared: bytes of shared memory one program may take. device: its number here."""

    name: str
    backend: str
    arch: int | str
    warp: int
    shared: int
    device: int


TARGETS: Mapping[str, Target] = {
    t.name: t
    for t in (
        Target("sm_80", "cuda", 80, 32, 166912, 0),
        Target("sm_90", "cuda", 90, 32, 232448, 1),
        Target("sm_100", "cuda", 100, 32, 232448, 2),
        Target("gfx942", "hip", "gfx942", 64, 65536, 3),
    )
}
