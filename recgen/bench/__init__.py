"""Time and memory of generated operators, against softmax attention, a token loop and another library.

    run([], None, quick=False)                          # simple_gla and gla, as the project promises them
    run(["retnet"], Path("bench.json"), quick=True, plot=Path("bench.png"))

Contenders of one comparison take turns, so the ratios hold on a busy machine; the absolute times need a quiet one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

import torch
from rich.console import Console

import recgen
from recgen.bench.clock import Times
from recgen.bench.compare import FULL, PROMISES, QUICK, Bench, Effort
from recgen.bench.contenders import Place, Size
from recgen.bench.gpu.timing import Gpu
from recgen.bench.results import Comparison, Memory, Results
from recgen.bench.tables import tables
from recgen.loader import SpecLike

__all__ = ["PROMISES", "Bench", "Comparison", "Effort", "Memory", "Results", "Size", "Times", "run"]

DEFAULT = ("simple_gla", "gla")


def run(
    specs: Sequence[SpecLike] = (),
    out: Path | None = None,
    quick: bool = False,
    *,
    device: str = "cpu",
    plot: Path | None = None,
    html: Path | None = None,
) -> Results:
    """Measure the operators (default: simple_gla and gla) and print two tables; write the results to `out` as JSON, to
    `plot` as a picture and to `html` as a page.

    `quick` takes short lengths and few rounds, for which nothing is promised. Nothing is promised on a GPU either,
    where the inputs are bfloat16."""
    console = Console()
    place = Place(device, torch.float32 if device == "cpu" else torch.bfloat16)
    bench = Bench(Size(), QUICK if quick else FULL, place, None if device == "cpu" else Gpu())
    modules = _named([recgen.load(spec) for spec in specs or DEFAULT])
    comparisons: list[Comparison] = []
    memory: list[Memory] = []
    with console.status("measuring") as status:
        for name, module in modules.items():
            status.update(f"measuring the time of {name}")
            comparisons += bench.compare(name, module)
        for name, lengths, work in bench.memory_contenders(modules):
            status.update(f"measuring the memory of {name}")
            memory.append(bench.memory(name, lengths, work))
    shown = "CPU" if device == "cpu" else torch.cuda.get_device_name()
    dtype = str(place.dtype).removeprefix("torch.")
    results = Results(
        asdict(bench.size),
        torch.get_num_threads(),
        tuple(comparisons),
        tuple(memory),
        tuple(bench.notes),
        shown,
        dtype,
    )
    for table in tables(results):
        console.print(table)
    _write(results, console, out, plot, html)
    return results


def _named(modules: list[ModuleType]) -> dict[str, ModuleType]:
    """Modules by the names of their operators, numbered where two have the same."""
    named: dict[str, ModuleType] = {}
    for module in modules:
        name = base = str(module.SPEC["name"])
        number = 1
        while name in named and named[name] is not module:
            number += 1
            name = f"{base} ({number})"
        named[name] = module
    return named


def _write(results: Results, console: Console, out: Path | None, plot: Path | None, html: Path | None) -> None:
    if out is not None:
        console.print(f"wrote {results.write(Path(out))}")
    if plot is not None or html is not None:
        from recgen.bench import report

        if plot is not None:
            console.print(f"wrote {report.write_picture(results, plot)}")
        if html is not None:
            console.print(f"wrote {report.write_page(results, html)}")
