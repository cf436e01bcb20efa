"""The tiles that are known to fit a plan's kernels: found once by compiling for GPUs that are not here, kept as files.

A file in recgen/tiles/ holds, for the kernels of one plan, by target and width, what `recgen.verify.tiles` found, and
the orders of statements that `recgen.verify.orders` found. It is filed by the plan, not by a name: every spec that
leads to the same kernels takes it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from recgen import resources

from .kernels import Kernel, Plan
from .show import show_plan

Config = tuple[int, int, int, int]
"""Rows of a chunk, tile along the tiled axis, warps, stages."""


@dataclass(frozen=True)
class Tiles:
    """Target → width → kernel → what fits, the best first; the version of Triton it was compiled with; and kernel →
    the order of its variables."""

    triton: str
    found: Mapping[str, Mapping[int, Mapping[str, tuple[Config, ...]]]]
    orders: Mapping[str, tuple[str, ...]]


def kernels_digest(plan: Plan) -> str:
    """The sha256 of what the kernels compute, whatever their own orders."""
    return hashlib.sha256(show_plan(plan).encode()).hexdigest()


def known_tiles(plan: Plan) -> Tiles | None:
    """The tiles that are known to fit the plan's kernels, or None."""
    return _all().get(kernels_digest(plan))


def ordered(plan: Plan) -> Plan:
    """The plan with the orders that are known for its kernels."""
    known = known_tiles(plan)
    return plan if known is None else with_orders(plan, known.orders)


def with_orders(plan: Plan, orders: Mapping[str, tuple[str, ...]]) -> Plan:
    """The plan with these orders, by kernel."""

    def own(kernels: tuple[Kernel, ...]) -> tuple[Kernel, ...]:
        return tuple(replace(k, order=orders.get(k.name, k.order)) for k in kernels)

    (forward,) = own((plan.forward,))
    return replace(plan, forward=forward, backward=own(plan.backward), alone=own(plan.alone), whole=own(plan.whole))


@cache
def _all() -> dict[str, Tiles]:
    found: dict[str, Tiles] = {}
    for path in sorted(resources.tiles_dir().glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        tiles = {
            target: {
                int(width): {k: tuple(map(tuple, configs)) for k, configs in kernels.items()}
                for width, kernels in sorted(widths.items(), key=lambda item: int(item[0]))
            }
            for target, widths in content["tiles"].items()
        }
        orders = {kernel: tuple(order) for kernel, order in content.get("orders", {}).items()}
        found |= {digest: Tiles(content["triton"], tiles, orders) for digest in content["plans"]}
    return found
