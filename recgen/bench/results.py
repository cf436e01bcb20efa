"""What a benchmark found, as immutable values that can be printed and written as JSON."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from recgen.bench.clock import Times, ratios
from recgen.bench.memory import growth


@dataclass(frozen=True)
class Comparison:
    """One interleaved run of an operator against another contender, at one length.

    `speedup` says how many times faster the operator is: the ratio of the medians, and the quartiles of the ratios
    round by round. `wanted` is the least speed-up that the project promises, or None where it promises none.
    """

    operator: str
    against: str
    length: int
    operator_seconds: Times
    against_seconds: Times
    wanted: float | None = None
    note: str = ""

    @property
    def speedup(self) -> tuple[float, tuple[float, float]]:
        return ratios(self.against_seconds, self.operator_seconds)

    @property
    def ok(self) -> bool:
        """The promise is kept, or there is none."""
        return self.wanted is None or self.speedup[0] >= self.wanted


@dataclass(frozen=True)
class Memory:
    """Peak bytes of forward and backward at growing lengths."""

    name: str
    lengths: tuple[int, ...]
    peaks: tuple[int, ...]

    @property
    def slope(self) -> float:
        """Of log memory against log length: 1 is linear, 2 quadratic."""
        return growth(list(self.lengths), [float(peak) for peak in self.peaks])


@dataclass(frozen=True)
class Results:
    """Everything that one `run` measured, and where."""

    sizes: dict[str, int]
    threads: int
    comparisons: tuple[Comparison, ...]
    memory: tuple[Memory, ...]

    @property
    def ok(self) -> bool:
        """Every promise that was measured is kept."""
        return all(comparison.ok for comparison in self.comparisons)

    def as_dict(self) -> dict[str, object]:
        """A plain dict: seconds, bytes and ratios as numbers."""
        machine = {"platform": platform.platform(), "torch": torch.__version__, "threads": self.threads}
        comparisons = [
            asdict(c) | {"speedup": c.speedup[0], "speedup_quartiles": c.speedup[1], "ok": c.ok}
            for c in self.comparisons
        ]
        return {
            "machine": machine,
            "sizes": self.sizes,
            "comparisons": comparisons,
            "memory": [asdict(m) | {"slope": m.slope} for m in self.memory],
            "ok": self.ok,
        }

    def write(self, path: Path) -> Path:
        """Write the dict as JSON to `path`."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.as_dict(), indent=2) + "\n", encoding="utf-8")
        return path
