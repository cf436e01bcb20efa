"""What a benchmark found, as immutable values that can be printed and written as JSON."""

from __future__ import annotations

import platform
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from recgen.bench.clock import Times, ratios
from recgen.bench.memory import growth
from recgen.files import write_json

FORWARD, BACKWARD, BOTH, STEP = PASSES = ("forward", "backward", "both", "one token")


@dataclass(frozen=True)
class Comparison:
    """One interleaved run of an operator against another contender, at one length.

    `what` is one of PASSES: forward, backward, both together, or one more token after `length` others.

    `speedup` says how many times faster the operator is: the median of the ratios round by round, and their
    quartiles. `wanted` is the least speed-up that the project promises, or None where it promises none.
    """

    operator: str
    against: str
    length: int
    operator_seconds: Times
    against_seconds: Times
    wanted: float | None = None
    note: str = ""
    what: str = BOTH

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
    notes: tuple[str, ...] = ()
    device: str = "cpu"
    dtype: str = "float32"

    @property
    def ok(self) -> bool:
        """Every promise that was measured is kept."""
        return all(comparison.ok for comparison in self.comparisons)

    def as_dict(self) -> dict[str, object]:
        """A plain dict: seconds, bytes and ratios as numbers."""
        machine = {
            "platform": platform.platform(),
            "torch": torch.__version__,
            "threads": self.threads,
            "device": self.device,
            "dtype": self.dtype,
        }
        comparisons = [
            asdict(c) | {"speedup": c.speedup[0], "speedup_quartiles": c.speedup[1], "ok": c.ok}
            for c in self.comparisons
        ]
        return {
            "machine": machine,
            "sizes": self.sizes,
            "comparisons": comparisons,
            "notes": list(self.notes),
            "memory": [asdict(m) | {"slope": m.slope} for m in self.memory],
            "ok": self.ok,
        }

    def write(self, path: Path) -> Path:
        """Write the dict as JSON to `path`."""
        write_json(path, self.as_dict())
        return path
