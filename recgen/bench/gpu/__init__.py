"""Everything that only a GPU can tell, in one run of minutes: are the kernels right on the chip, and how fast are they.

    run([], Path("gpu"))              # checks the catalogue, times ten operators, writes gpu.json and gpu.md
    run([], Path("gpu"), dry=True)    # the same steps on the CPU, tiny, in Triton's interpreter; times are None

    plan        what is done, at which sizes, in which order
    checks      every form that has a kernel against naive in float64
    contenders  what is timed at one shape; peers: functions of another library, as data; timing: CUDA events
    work        what each job does; worker: a process that does jobs; pool: many of them, until a deadline
    results     what was found; tables: as Markdown and as a summary; machine: on what

Every job runs in a process of its own kind, so that a crash costs what was being done and nothing else. Processes share
Triton's cache: what is timed is compiled by many processes beforehand. Times are taken by one process alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from recgen.bench.gpu import pool
from recgen.bench.gpu.machine import machine, peer_obstacle
from recgen.bench.gpu.peers import PEERS
from recgen.bench.gpu.plan import DRY, DRY_OPERATORS, REAL, TIMED, Batch, Extent, Job, alone, at_once
from recgen.bench.gpu.results import Results

BUDGET = 480.0
AT_ONCE, ALONE = 0.55, 0.95
"""By which part of the budget each phase ends. Checks that had to stop go on after the times, while there is time."""

Progress = Callable[[str], None]


class Refused(Exception):
    """What a run cannot be made of, or on."""


def run(
    names: Sequence[str] = (),
    out: Path = Path("gpu"),
    *,
    budget: float = BUDGET,
    dry: bool = False,
    modules: Path | None = None,
    progress: Progress = lambda text: None,
) -> Results:
    """Check and time the operators on the GPU within `budget` seconds; write gpu.json and gpu.md to the folder `out`.

    names    operators of the catalogue (default: all; in a dry run three), or of the files in `modules`
    dry      on the CPU instead, at tiny sizes; what would be measured is None
    modules  a folder of generated modules to use (default: the catalogue's specs are compiled)
    progress called with what has just been done

    Refused for a name that is none and without a GPU, FileNotFoundError where `modules` is no folder.
    """
    import torch

    started = time.monotonic()
    if not dry and not torch.cuda.is_available():
        raise Refused("torch sees no GPU here: run this on a machine with one, or try the steps with --dry-run")
    operators = choose(names, modules, dry)
    extent = DRY if dry else REAL
    results = Results(machine(dry), dry, operators, budget)
    setting = pool.Setting(dry, None if modules is None else str(modules.resolve()))
    written = started

    def record(job: Job, label: str, result: dict[str, Any]) -> None:
        nonlocal written
        results.record(job, label, result)
        progress(f"{job}: {label}")
        if time.monotonic() - written > 10:  # what is found is kept, should the run itself be ended
            results.seconds, written = time.monotonic() - started, time.monotonic()
            results.write(out)

    def do(batches: Sequence[Batch], slots: int, until: float) -> list[Batch]:
        return pool.run(batches, setting, slots, started + until * budget, extent.unit, record)

    obstacle = peer_obstacle(dry)
    planned = list(at_once(operators, extent, peers=not obstacle))
    left = do(planned, extent.slots, AT_ONCE)
    obstacles = _obstacles(operators, extent, obstacle, planned, left, results)
    untimed = do([alone(operators, extent, obstacles)], 1, ALONE)
    still = [batch for batch in left if batch.jobs[0].kind == "check"]
    results.leave_out([*do(still, extent.slots, 1.0), *untimed])
    results.seconds = time.monotonic() - started
    results.write(out)
    return results


def choose(names: Sequence[str], modules: Path | None, dry: bool) -> list[str]:
    """The operators of a run. Refused for one that there is not, FileNotFoundError where `modules` is no folder."""
    from recgen.resources import catalogue
    from recgen.spec.source import suggestion

    if modules is None:
        known = list(catalogue())
    elif modules.is_dir():
        known = sorted(path.stem for path in modules.glob("*.py") if not path.stem.startswith("_"))
    else:
        raise FileNotFoundError(2, "no such folder of generated modules", str(modules))
    where = "the catalogue" if modules is None else str(modules)
    for name in names:
        if name not in known:
            fix = suggestion(name, known, f"it has {', '.join(known) or 'none'}")
            raise Refused(f"{name}: there is no such operator in {where}; {fix}")
    if not known:
        raise Refused(f"{where}: there is no generated module here")
    return list(dict.fromkeys(names)) or ([name for name in DRY_OPERATORS if name in known] or known if dry else known)


def _obstacles(
    operators: Sequence[str],
    extent: Extent,
    obstacle: str,
    planned: Sequence[Batch],
    left: Sequence[Batch],
    results: Results,
) -> dict[tuple[str, int], str]:
    """Why an operator's peer is not timed at a width: there is none here, or its kernels are not compiled."""
    widths = {shape.D for shape in extent.shapes}
    if obstacle:
        return {(name, width): obstacle for name in TIMED for width in widths if name in PEERS}
    unfinished = {job for batch in left for job in batch.jobs}
    missing = {
        (PEERS[job.operator].kernels, job.width)
        for batch in planned
        for job in batch.jobs
        if job.kind == "tune" and (job in unfinished or not results.compiled(job))
    }
    return {
        (name, width): "its kernels are not compiled: see the notes, or there was no time"
        for name in operators
        for width in widths
        if name in PEERS and (PEERS[name].kernels, width) in missing
    }
