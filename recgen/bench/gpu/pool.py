"""Processes that do jobs, several at once, until a deadline. One that dies costs the unit that killed it."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import IO, Any

from recgen.bench.gpu.plan import Batch, Job
from recgen.bench.gpu.worker import LOST
from recgen.python import command, read_answer, search_path

WORKER = "recgen.bench.gpu.worker"
Record = Callable[[Job, str, dict[str, Any]], None]


@dataclass(frozen=True)
class Setting:
    """What every process is told, and its environment."""

    dry: bool
    modules: str | None

    def environment(self, tuning: bool) -> dict[str, str]:
        """One thread each, and Triton's interpreter exactly in a dry run.

        Where configurations are only compiled, the choice between them must not be kept.
        """
        own = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
        own |= {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", "PYTHONPATH": search_path()}
        if self.dry:
            own |= {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
        if tuning:
            own |= {"FLA_CACHE_RESULTS": "0", "TRITON_CACHE_AUTOTUNING": "0"}
        return own


@dataclass
class _Running:
    batch: Batch
    process: subprocess.Popen[str]
    errors: IO[str]
    at: int = -1  # the job
    labels: list[str] = field(default_factory=list)
    unit: int = 0  # the first unit of the job that has no result
    begun: float | None = None  # when that unit began, if it has
    killed: str = ""

    @property
    def job(self) -> Job:
        return self.batch.jobs[max(self.at, 0)]

    @property
    def label(self) -> str:
        return self.labels[self.unit] if self.unit < len(self.labels) else ""

    def rest(self, past: int = 0) -> Batch:
        """What has no result yet, without the next `past` units."""
        if self.at < 0:
            return self.batch
        return Batch(self.batch.jobs[self.at :], self.unit + past)


def run(
    batches: Iterable[Batch], setting: Setting, slots: int, deadline: float, unit_seconds: float, record: Record
) -> list[Batch]:
    """Do the batches, `slots` at a time, until time.monotonic() reaches `deadline`. What is left is returned.

    record        called with each job, the unit's label and its result, or {"crash": why}
    unit_seconds  a unit that takes longer is ended, as one that crashed
    """
    waiting = deque(batch for batch in batches if batch.jobs)
    running: dict[int, _Running] = {}
    heard: queue.Queue[tuple[int, str | None]] = queue.Queue()
    numbers = iter(range(sys.maxsize))

    def say(number: int, line: str | None) -> None:
        heard.put((number, line))

    try:
        while (waiting or running) and time.monotonic() < deadline:
            while waiting and len(running) < slots:
                number = next(numbers)
                running[number] = _start(waiting.popleft(), setting, partial(say, number))
            try:
                number, line = heard.get(timeout=min(0.5, max(0.0, deadline - time.monotonic())))
            except queue.Empty:
                _end_hanging(running.values(), unit_seconds)
                continue
            if line is not None:
                _hear(running[number], read_answer(WORKER, line), record)
            else:
                rest = _ended(running.pop(number), record)
                if rest is not None:
                    waiting.appendleft(rest)
        return [*(one.rest() for one in running.values()), *waiting]
    finally:
        for one in running.values():
            one.process.kill()
            one.process.wait()
            one.errors.close()


def _start(batch: Batch, setting: Setting, say: Callable[[str | None], None]) -> _Running:
    errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
    process = subprocess.Popen(
        command(WORKER),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        env=setting.environment(batch.jobs[0].kind == "tune"),
    )
    task = {
        "jobs": [job.as_dict() for job in batch.jobs],
        "skip": batch.skip,
        "dry": setting.dry,
        "modules": setting.modules,
    }

    def listen() -> None:
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(task) + "\n")
            process.stdin.close()
        except OSError:
            pass  # it died at once; its output ends
        for line in process.stdout:
            say(line)
        say(None)

    threading.Thread(target=listen, daemon=True).start()
    return _Running(batch, process, errors)


def _hear(one: _Running, message: dict[str, Any], record: Record) -> None:
    if "labels" in message:
        one.unit = one.batch.skip if one.at < 0 else 0
        one.at, one.labels = one.at + 1, message["labels"]
    elif "start" in message:
        one.unit, one.begun = message["start"], time.monotonic()
    else:
        record(one.job, one.label, message["result"])
        one.unit, one.begun = one.unit + 1, None


def _end_hanging(running: Iterable[_Running], seconds: float) -> None:
    for one in running:
        if one.begun is not None and time.monotonic() - one.begun > seconds and not one.killed:
            one.killed = f"no answer within {seconds:g} seconds"
            one.process.kill()


def _ended(one: _Running, record: Record) -> Batch | None:
    """What is still to do of an ended process's batch, after what killed it is recorded."""
    code = one.process.wait()
    one.errors.seek(0)
    last = one.errors.read().strip().splitlines()[-1:]
    one.errors.close()
    if code == 0:
        return None
    if code == LOST:
        return one.rest()
    why = one.killed or f"the process ended with {code}" + "".join(f": {line}" for line in last)
    if one.begun is not None:
        record(one.job, one.label, {"crash": why})
        return one.rest(past=1)
    unopened = one.at + (one.unit >= len(one.labels))  # the job that was being opened
    if unopened == len(one.batch.jobs):
        return None  # it had done everything
    record(one.batch.jobs[unopened], "", {"crash": why})
    later = one.batch.jobs[unopened + 1 :]
    return Batch(later) if later else None
