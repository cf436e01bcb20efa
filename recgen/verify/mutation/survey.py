"""A survey of faults: the worker process started, listened to, and its answers put together."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import ModuleType

from ..processes import Process
from .faults import Fault
from .report import Survey, Tried

WORKER = "recgen.verify.mutation.worker"
LIMIT, BUDGET = 80, 90.0
Progress = Callable[[int, int, str], None]


def run(
    module: ModuleType,
    *,
    limit: int = LIMIT,
    seed: int = 0,
    budget: float = BUDGET,
    progress: Progress = lambda done, total, text: None,
) -> Survey:
    """Try at most `limit` faults of an emitted module, drawn by `seed`; none is started after `budget` seconds.

    Raises RuntimeError with the process's own words when it dies."""
    survey = Survey(module.SPEC["name"], str(module.__file__), seed)
    started = time.monotonic()
    task = {"path": survey.path, "limit": limit, "seed": seed, "budget": budget}
    process = Process(WORKER, task)
    try:
        for message in process.answers():
            if "fault" in message:
                fault = Fault(**message["fault"])
                survey.tried.append(Tried(fault, message["by"], message["why"]))
                progress(len(survey.tried), survey.chosen, f"{fault.function}: {fault.kind}")
            else:
                for name, value in message.items():
                    setattr(survey, name, value)
    finally:
        process.close()
    survey.seconds = time.monotonic() - started
    return survey
