"""The tiles that are known to fit a plan's kernels: found once by compiling for GPUs that are not here, kept as files.

A file in recgen/tiles/ holds, for the kernels of one plan, by target and width, what `recgen.verify.tiles` found. It is
filed by the plan, not by a name: every spec that leads to the same kernels takes it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from recgen import resources

from .kernels import Plan
from .show import show_plan

Config = tuple[int, int, int, int]
"""Rows of a chunk, tile along the tiled axis, warps, stages."""


@dataclass(frozen=True)
class Tiles:
    """Target → width → kernel → what fits, the best first; and the version of Triton it was compiled with."""

    triton: str
    found: Mapping[str, Mapping[int, Mapping[str, tuple[Config, ...]]]]


def kernels_digest(plan: Plan) -> str:
    """The sha256 of what the kernels compute, in which order."""
    return hashlib.sha256(show_plan(plan).encode()).hexdigest()


def known_tiles(plan: Plan) -> Tiles | None:
    """The tiles that are known to fit the plan's kernels, or None."""
    return _all().get(kernels_digest(plan))


@cache
def _all() -> dict[str, Tiles]:
    found = {}
    for path in sorted(resources.tiles_dir().glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        tiles = {
            target: {int(width): {k: tuple(map(tuple, configs)) for k, configs in kernels.items()}
                     for width, kernels in sorted(widths.items(), key=lambda item: int(item[0]))}
            for target, widths in content["tiles"].items()
        }
        found |= {digest: Tiles(content["triton"], tiles) for digest in content["plans"]}
    return found
