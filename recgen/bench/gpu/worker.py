"""A process that does jobs. It reads them as one line of JSON and answers in lines of JSON.

    {"labels": [...]}      the units of the job that begins now
    {"start": 3}           the unit that begins now
    {"result": {...}}      what came of it

It ends with LOST where the device can no longer be used, as after an assertion in a kernel: the next unit needs a new
process. Started as `python -m recgen.bench.gpu.worker`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

LOST = 3


def main() -> int:
    """Do what standard input names."""
    task = json.loads(sys.stdin.readline())
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what kernels and libraries print must not mix with the answers

    def say(**message: Any) -> None:
        print(json.dumps(message), file=answers, flush=True)

    from recgen.bench.gpu.plan import DRY, REAL, Job
    from recgen.bench.gpu.timing import Gpu, Meter, StandIn
    from recgen.bench.gpu.work import units

    extent, device = (DRY, "cpu") if task["dry"] else (REAL, "cuda")
    kind: Callable[[], Meter] = StandIn if task["dry"] else Gpu
    meter = cache(kind)
    skip = task["skip"]
    for fields in task["jobs"]:
        job = Job.from_dict(fields)
        todo = list(units(job, _module(job.operator, task["modules"]), extent, meter, device))
        say(labels=[label for label, _ in todo])
        for n, (_, work) in enumerate(todo[skip:], skip):
            say(start=n)
            result, lost = _do(work, device)
            say(result=result)
            if lost:
                return LOST
        skip = 0
    return 0


@cache
def _module(operator: str, folder: str | None) -> ModuleType:
    """The operator's module: a file in `folder`, or what the catalogue's spec compiles to."""
    if folder is None:
        from recgen import load

        return load(operator)
    from recgen.verify.profile import load_module

    return load_module(Path(folder) / f"{operator}.py")


def _do(work: Callable[[], dict[str, Any]], device: str) -> tuple[dict[str, Any], bool]:
    """The unit's result, or what it raised, and whether the device is lost."""
    import torch

    try:
        result = work()
    except Exception as error:
        result = {"crash": f"{type(error).__name__}: {error}"}
    if device == "cuda":
        try:
            torch.cuda.synchronize()
        except Exception as error:
            return {"crash": f"{type(error).__name__}: {error}"}, True
    return result, False


if __name__ == "__main__":
    sys.exit(main())
