"""The file of an operator's finds in recgen/tiles: orders of statements, and tiles, of the kernels of one plan."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recgen.plan.kernels import Plan
from recgen.plan.tiles import kernels_digest

BLANK = (tokenize.COMMENT, tokenize.NL)


def code_of(module: str) -> str:
    """The sha256 of the kernels in a module's text and of the functions that they call, without comments."""
    digest = hashlib.sha256()
    for f in ast.parse(module).body:
        if isinstance(f, ast.FunctionDef) and {ast.unparse(d) for d in f.decorator_list} & {"_kernel", "_helper"}:
            text = ast.get_source_segment(module, f) or ""
            tokens = tokenize.generate_tokens(io.StringIO(text).readline)
            digest.update(" ".join(t.string for t in tokens if t.type not in BLANK).encode())
    return digest.hexdigest()


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

    def only_for(self, code: str) -> None:
        """Forget tiles of other code of the kernels: the emitter may have changed where the plan has not."""
        if self.content.get("code") != code:
            self.content |= {"code": code, "tiles": {}}

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
