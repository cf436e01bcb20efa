"""The file of an operator's finds in recgen/tiles: orders of statements, and tiles, of the kernels of one plan."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recgen.plan.kernels import Plan
from recgen.plan.tiles import kernels_digest


@dataclass
class Finds:
    """What is known of a plan's kernels. tiles: target → width → kernel → tiles. orders: kernel → variables."""

    path: Path
    content: dict[str, Any]

    @classmethod
    def of(cls, name: str, plan: Plan, folder: Path) -> Finds:
        """The operator's finds. Tiles of other kernels, or found with another Triton, are not among them; orders are,
        since any order computes the same."""
        import triton

        path, digest = folder / f"{name}.json", kernels_digest(plan)
        known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        if digest not in known.get("plans", ()) or known["triton"] != triton.__version__:
            orders = {"orders": known["orders"]} if known.get("orders") else {}
            known = {"plans": [digest], "triton": triton.__version__, "tiles": {}} | orders
        return cls(path, known)

    @property
    def orders(self) -> Mapping[str, tuple[str, ...]]:
        return {kernel: tuple(order) for kernel, order in self.content.get("orders", {}).items()}

    def tiles(self, target: str, width: int) -> Mapping[str, Any] | None:
        """What is known to fit there: nothing where it was tried in vain, and None where it was not tried."""
        found: Mapping[str, Any] | None = self.content["tiles"].get(target, {}).get(str(width))
        return found

    def add_tiles(self, target: str, width: int, found: Mapping[str, Any]) -> None:
        self.content["tiles"].setdefault(target, {})[str(width)] = found
        self._write()

    def add_order(self, kernel: str, order: Sequence[str]) -> None:
        """An order in the place of what was emitted before, whose tiles are gone with it."""
        self.content["orders"] = {**self.content.get("orders", {}), kernel: list(order)}
        self.content["tiles"] = {}
        self._write()

    def _write(self) -> None:
        self.path.write_text(json.dumps(self.content, indent=1) + "\n", encoding="utf-8")
