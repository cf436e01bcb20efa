"""What length costs: time and memory of the generated operator and of softmax attention, and the price of one token."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType

from recgen.bench.clock import Work, interleave
from recgen.bench.contenders import Size, attend, generated, softmax, softmax_written_out, step
from recgen.bench.memory import growth, peak_bytes

FUSED = "softmax attention, fused kernel"
WRITTEN_OUT = "softmax attention, written out"


@dataclass
class Curve:
    """One contender's cost by length: seconds or bytes."""

    name: str
    lengths: list[int] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)

    @property
    def slope(self) -> float:
        """Growth over the longer half of the lengths: 1 is linear, 2 quadratic."""
        tail = max(2, len(self.lengths) // 2)
        return growth(self.lengths[-tail:], self.costs[-tail:])


@dataclass(frozen=True)
class Costs:
    """Curves of forward + backward by length (`time` in seconds, `memory` in bytes), and of one token by position."""

    time: tuple[Curve, ...]
    memory: tuple[Curve, ...]
    token: tuple[Curve, ...]
    size: Size


@dataclass(frozen=True)
class Lengths:
    """What is measured; the written-out softmax stops at `written_out`, where its matrices get large."""

    sequence: tuple[int, ...] = (256, 512, 1024, 2048, 4096, 8192)
    written_out: int = 2048
    positions: tuple[int, ...] = (256, 1024, 4096, 16384, 65536)
    rounds: int = 3


def measure(
    operator: ModuleType,
    lengths: Lengths,
    size: Size | None = None,
    report: Callable[[float], None] = lambda done: None,
) -> Costs:
    """Measure all curves; `report` is called with the share that is done."""
    size = size or Size(H=4)
    name = f"generated {operator.SPEC['name']}"
    makers: dict[str, Callable[[Size], Work]] = {
        name: lambda at: generated(operator, at),
        FUSED: softmax,
        WRITTEN_OUT: softmax_written_out,
    }
    time = {maker: Curve(maker) for maker in makers}
    memory = {maker: Curve(maker) for maker in makers}
    for done, length in enumerate(lengths.sequence):
        report(done / (len(lengths.sequence) + 1))
        works = {
            maker: make(size.at(length))
            for maker, make in makers.items()
            if maker != WRITTEN_OUT or length <= lengths.written_out
        }
        for maker, times in interleave(works, lengths.rounds).items():
            _add(time[maker], length, times.median)
            _add(memory[maker], length, peak_bytes(works[maker]))
    token = _token_curves(operator, name, lengths, size)
    report(1.0)
    return Costs(tuple(time.values()), tuple(memory.values()), token, size)


def _token_curves(operator: ModuleType, name: str, lengths: Lengths, size: Size) -> tuple[Curve, ...]:
    state, attention = Curve(f"{name}, step"), Curve("softmax attention, cached keys and values")
    for position in lengths.positions:
        for curve, work in ((state, step(operator, size)), (attention, attend(size, position))):
            times = interleave({curve.name: work}, 7 * lengths.rounds, warmup=3)  # a turn would evict the state
            _add(curve, position, times[curve.name].median)
    return state, attention


def _add(curve: Curve, length: int, cost: float) -> None:
    curve.lengths.append(length)
    curve.costs.append(cost)
