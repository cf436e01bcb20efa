"""Time and memory of generated operators on the CPU, against softmax attention and a token loop.

    run([], None, quick=False)                          # simple_gla and gla, as the project promises them
    run(["retnet"], Path("bench.json"), quick=True)

Contenders of one comparison take turns, so the ratios hold on a busy machine; the absolute times need a quiet one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType

import torch
from rich.console import Console

import recgen
from recgen.bench.clock import Times, interleave
from recgen.bench.contenders import Size, generated, softmax, softmax_written_out, token_loop
from recgen.bench.memory import peak_bytes
from recgen.bench.results import Comparison, Memory, Results
from recgen.bench.tables import tables

__all__ = ["Comparison", "Memory", "Results", "Size", "Times", "run"]

DEFAULT = ("simple_gla", "gla")

SOFTMAX = "softmax"
LOOP = "token loop"

PROMISES = {("simple_gla", SOFTMAX, 2048): 1.0, ("simple_gla", SOFTMAX, 8192): 3.0, ("gla", LOOP, 2048): 15.0}
"""Least speed-up by operator, contender and length, at the default sizes and float32."""


@dataclass(frozen=True)
class Effort:
    """How much is measured. The written-out softmax is left out of the memory table above `written_out_up_to`."""

    lengths: tuple[int, int]
    rounds: tuple[int, int]
    loop_length: int
    loop_rounds: int
    memory_lengths: tuple[int, ...]
    written_out_up_to: int = 2048


FULL = Effort((2048, 8192), (15, 5), 2048, 1, (1024, 2048, 4096, 8192))
QUICK = Effort((512, 1024), (3, 3), 128, 1, (256, 512, 1024), 512)


def run(names: Sequence[str] = (), out: Path | None = None, quick: bool = False) -> Results:
    """Measure the operators (default: simple_gla and gla), print two tables, and write them to `out` as JSON.

    `quick` takes short lengths and few rounds, for which nothing is promised.
    """
    size, effort, console = Size(), QUICK if quick else FULL, Console()
    modules = {name: recgen.load(name) for name in names or DEFAULT}
    with console.status("measuring") as status:
        comparisons = []
        for name, module in modules.items():
            status.update(f"measuring the time of {name}")
            comparisons += list(compare(name, module, size, effort))
        memory = []
        for name, lengths, work in _memory_contenders(modules, size, effort):
            status.update(f"measuring the memory of {name}")
            memory.append(Memory(name, lengths, tuple(peak_bytes(work(size.at(length))) for length in lengths)))
    results = Results(asdict(size), torch.get_num_threads(), tuple(comparisons), tuple(memory))
    for table in tables(results):
        console.print(table)
    if out is not None:
        console.print(f"written to {results.write(Path(out))}")
    return results


def compare(name: str, module: ModuleType, size: Size, effort: Effort) -> Iterator[Comparison]:
    """The operator against softmax attention at each length, then against its own token loop."""
    causal = module.SPEC.get("causal", True)  # softmax attention over what the operator sees
    for length, rounds in zip(effort.lengths, effort.rounds, strict=True):
        at = size.at(length)
        times = interleave({name: generated(module, at), SOFTMAX: softmax(at, causal)}, rounds)
        yield Comparison(name, SOFTMAX, length, times[name], times[SOFTMAX], PROMISES.get((name, SOFTMAX, length)))
    at = size.at(effort.loop_length)
    operator = generated(module, at)
    operator()  # the loop is too slow for a round that is not timed
    times = interleave({name: operator, LOOP: token_loop(module, at)}, effort.loop_rounds, warmup=0)
    wanted = PROMISES.get((name, LOOP, at.T))
    note = f"{effort.loop_rounds} round{'s' * (effort.loop_rounds != 1)}, because the loop is slow"
    yield Comparison(name, LOOP, at.T, times[name], times[LOOP], wanted, note)


def _memory_contenders(modules: dict[str, ModuleType], size: Size, effort: Effort) -> Iterator[tuple]:
    lengths = effort.memory_lengths
    for name, module in modules.items():
        yield name, lengths, lambda at, module=module: generated(module, at)
    yield f"{SOFTMAX}, fused", lengths, softmax
    yield f"{SOFTMAX}, written out", tuple(n for n in lengths if n <= effort.written_out_up_to), softmax_written_out
