"""What is compared with what, at which lengths, in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType

import torch

from recgen.bench.clock import Stopwatch, Times, Work, interleave, wall
from recgen.bench.contenders import (
    CPU,
    Passes,
    Place,
    Size,
    attend,
    generated,
    sample,
    softmax,
    softmax_written_out,
    step,
    token_loop,
)
from recgen.bench.gpu.contenders import difference, peer_call, profile_of
from recgen.bench.gpu.peers import NAIVE, PEERS, NoPeer, Peer
from recgen.bench.gpu.timing import Gpu
from recgen.bench.memory import peak_bytes
from recgen.bench.results import BACKWARD, BOTH, FORWARD, STEP, Comparison, Memory

SOFTMAX = "softmax"
LOOP = "token loop"
FLA = "fla"

PROMISES = {("simple_gla", SOFTMAX, 2048): 1.0, ("simple_gla", SOFTMAX, 8192): 3.0, ("gla", LOOP, 2048): 15.0}
"""Least speed-up of forward + backward by operator, contender and length, at the default sizes and float32 on a CPU."""

SAME = {torch.float32: 1e-3, torch.bfloat16: 5e-2}  # how far another library's output may be from the operator's


@dataclass(frozen=True)
class Effort:
    """How much is measured. The written-out softmax is left out of the memory table above `written_out_up_to`."""

    lengths: tuple[int, ...]
    rounds: tuple[int, ...]
    loop_length: int
    loop_rounds: int
    memory_lengths: tuple[int, ...]
    written_out_up_to: int = 2048
    positions: tuple[int, ...] = (256, 1024, 4096, 16384, 65536)
    token_rounds: int = 31


FULL = Effort((512, 1024, 2048, 4096, 8192), (15, 15, 15, 7, 5), 2048, 1, (512, 1024, 2048, 4096, 8192))
QUICK = Effort((256, 512, 1024), (5, 5, 5), 128, 1, (256, 512, 1024), 512, (256, 1024, 4096), 15)


@dataclass
class Bench:
    """One run of the benchmark; `gpu` measures where the tensors lie on one. `notes` gathers what could not be
    measured, and why."""

    size: Size
    effort: Effort
    place: Place = CPU
    gpu: Gpu | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def _stopwatch(self) -> Stopwatch:
        return wall if self.gpu is None else self.gpu.stopwatch

    def compare(self, name: str, module: ModuleType) -> Iterator[Comparison]:
        """The operator against softmax attention at each length, its own and another library's token loop, and one
        token against softmax attention's. On a GPU the library's kernels stand beside softmax instead of its loop."""
        causal = module.SPEC.get("causal", True)  # softmax attention over what the operator sees
        other = self._other(module, NAIVE if self.gpu is None else PEERS)
        for length, rounds in zip(self.effort.lengths, self.effort.rounds, strict=True):
            at = self.size.at(length)
            rivals = {SOFTMAX: softmax(at, causal, self.place)}
            if self.gpu is not None and (fla := other(at)) is not None:
                rivals[FLA] = fla
            yield from self._turns(name, generated(module, at, place=self.place), rivals, at.T, rounds)
        yield from self._loops(name, module, other)
        if hasattr(module, "step"):
            yield from self._tokens(name, module)

    def _loops(self, name: str, module: ModuleType, other: Callable[[Size], Passes | None]) -> Iterator[Comparison]:
        at = self.size.at(self.effort.loop_length)
        rivals = {LOOP: token_loop(module, at, self.place)}
        if self.gpu is None and (fla := other(at)) is not None:
            rivals[f"{FLA} {LOOP}"] = fla
        operator = generated(module, at, place=self.place)
        operator()  # a loop is too slow for a round that is not timed
        rounds = self.effort.loop_rounds
        note = f"{rounds} round{'s' * (rounds != 1)}, because the loop is slow"
        yield from self._turns(name, operator, rivals, at.T, rounds, warmup=0, note=note)

    def _turns(
        self,
        name: str,
        operator: Passes,
        rivals: Mapping[str, Passes],
        length: int,
        rounds: int,
        warmup: int = 1,
        note: str = "",
    ) -> Iterator[Comparison]:
        """The passes of all contenders in turn; the times of both passes together are their sums, round by round."""
        works: dict[str, Work] = {}
        for who, passes in {name: operator, **rivals}.items():
            works |= {f"{who} {FORWARD}": passes.forward, f"{who} {BACKWARD}": passes.backward}
        times = interleave(works, rounds, warmup, self._stopwatch)
        for who in (name, *rivals):
            each = zip(times[f"{who} {FORWARD}"].seconds, times[f"{who} {BACKWARD}"].seconds, strict=True)
            times[f"{who} {BOTH}"] = Times(tuple(forward + backward for forward, backward in each))
        for rival in rivals:
            for what in (FORWARD, BACKWARD, BOTH):
                wanted = PROMISES.get((name, rival, length)) if what == BOTH and self._promised() else None
                pair = times[f"{name} {what}"], times[f"{rival} {what}"]
                yield Comparison(name, rival, length, *pair, wanted, note, what)

    def _promised(self) -> bool:
        return self.place == CPU and self.size.at(Size().T) == Size()

    def _tokens(self, name: str, module: ModuleType) -> Iterator[Comparison]:
        for position in self.effort.positions:
            works = {name: step(module, self.size, self.place), SOFTMAX: attend(self.size, position, self.place)}
            times = interleave(works, self.effort.token_rounds, 3, self._stopwatch)
            yield Comparison(name, SOFTMAX, position, times[name], times[SOFTMAX], what=STEP)

    def _other(self, module: ModuleType, peers: Mapping[str, Peer]) -> Callable[[Size], Passes | None]:
        """What makes the other library's contender at a size; None where there is none, which is noted once."""
        name = module.SPEC["name"]
        noted = False

        def make(at: Size) -> Passes | None:
            nonlocal noted
            try:
                if name not in peers:
                    raise NoPeer(f"no function of flash-linear-attention is known here to compute {name}")
                return self._peer(module, peers[name], at)
            except NoPeer as why:
                if not noted:
                    self.notes.append(f"{name} is not compared with {FLA}: {why}")
                noted = True
                return None

        return make

    def _peer(self, module: ModuleType, chosen: Peer, at: Size) -> Passes:
        tensors = sample(module, at, self.place)
        run, leaves = peer_call(chosen.load(), chosen, tensors, profile_of(module).scale(at.H, at.K, at.V))
        try:
            with torch.no_grad():
                apart = difference(module.operator(**tensors)[0], chosen.finish(run(), tensors))
        except Exception as error:
            raise NoPeer(f"it raises {type(error).__name__}: {(str(error).splitlines() or [''])[0]}") from None
        if not apart <= SAME[self.place.dtype]:
            raise NoPeer(f"its output is not the operator's: {apart:.1e} apart")
        return Passes(run, list(leaves.values()))

    def memory_contenders(
        self, modules: Mapping[str, ModuleType]
    ) -> Iterator[tuple[str, tuple[int, ...], Callable[[Size], Work]]]:
        """Name, lengths, and what makes the work at a size, of everything whose memory is measured."""
        lengths = self.effort.memory_lengths
        for name, module in modules.items():
            yield name, lengths, partial(generated, module, place=self.place)
        yield f"{SOFTMAX}, fused", lengths, lambda at: softmax(at, place=self.place)
        if self.gpu is None:
            short = tuple(n for n in lengths if n <= self.effort.written_out_up_to)
            yield f"{SOFTMAX}, written out", short, softmax_written_out

    def memory(self, name: str, lengths: tuple[int, ...], make: Callable[[Size], Work]) -> Memory:
        """The peaks at all lengths."""
        peak = peak_bytes if self.gpu is None else self.gpu.peak
        peaks = []
        for length in lengths:
            work = make(self.size.at(length))
            if self.gpu is not None:
                work()  # what the kernels' first launch allocates is not theirs
            peaks.append(int(peak(work) or 0))
        return Memory(name, lengths, tuple(peaks))
