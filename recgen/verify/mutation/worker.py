"""The process in which faulty modules run: one that has torch and Triton's interpreter, and forks for every fault.

A fault may hang or crash its fork; it is then ended, and counts as caught. Reads its task as one line of JSON and
answers in lines of JSON. Started as `python -m recgen.verify.mutation.worker`.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import resource
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TextIO

import torch

from ..profile import Profile, load_module
from .faults import Fault, faults
from .quick import Check, baseline, first_failure

MEMORY = 8 * 2**30  # bytes that a faulty module may ask for beyond what the process has
STATM = Path("/proc/self/statm")
READY = "ready"  # what a fork says before the faulty module is loaded: what then goes wrong is the fault's doing
LEAST_SECONDS = 5.0
SLOWER = 2.0  # how many times the usual time, measured while lines are followed, a faulty module is given


def main() -> None:
    """Try faults of the module that standard input names."""
    task = json.loads(sys.stdin.readline())
    answers = sys.stdout
    sys.stdout = sys.stderr
    torch.set_num_threads(1)
    until = time.time() + task["budget"]
    profile = Profile.of(load_module(task["path"]))
    checks, wrong = baseline(profile)
    source = Path(profile.path).read_text(encoding="utf-8")
    found = faults(source)
    ran = frozenset[int]().union(*(check.lines for check in checks))
    reached = [fault for fault in found if fault.line in ran]
    chosen = random.Random(task["seed"]).sample(reached, min(task["limit"], len(reached)))
    _say(answers, wrong=wrong, found=len(found), reached=len(reached), chosen=len(chosen), checks=len(checks))
    if wrong:
        return
    with tempfile.TemporaryDirectory() as folder:
        for number, fault in enumerate(chosen):
            if time.time() > until:
                break
            telling = [check for check in checks if fault.line in check.lines]
            seconds = max(LEAST_SECONDS, SLOWER * sum(check.seconds for check in telling))
            by, why = _tried(fault, source, telling, Path(folder) / f"faulty_{number}.py", seconds)
            _say(answers, index=number, fault=vars(fault), by=by, why=why)


def _say(answers: TextIO, **message: Any) -> None:
    print(json.dumps(message), file=answers, flush=True)


def _tried(fault: Fault, source: str, checks: list[Check], path: Path, seconds: float) -> tuple[str, str]:
    """Which check caught the fault, and by what; two empty texts where none did.

    RuntimeError where the fork ends before it has the faulty module, which is no fault's doing."""
    path.write_text(fault.apply(source), encoding="utf-8")
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(path, checks, sender), daemon=True)
    process.start()
    sender.close()
    _await_ready(receiver, process)
    try:
        by, why = receiver.recv() if receiver.poll(seconds) else ("time limit", f"does not end in {seconds:.0f} s")
    except EOFError:
        process.join()
        by, why = "crash", f"the process died (exit code {process.exitcode})"
    if process.is_alive():
        process.join(1)
        process.kill()
    process.join()
    path.unlink()
    return by, why


def _await_ready(receiver: Connection, process: BaseProcess) -> None:
    try:
        said = receiver.recv()
    except EOFError:
        process.join()
        said = f"it ended with exit code {process.exitcode}"
    if said != READY:
        process.join()
        raise RuntimeError(f"a process to try a fault in cannot be set up: {said}")


def _child(path: Path, checks: list[Check], sender: Connection) -> None:
    """Load a faulty module, run the checks, send the verdict."""
    try:
        _settle()
    except Exception as error:
        sender.send(f"{type(error).__name__}: {error}")
        return
    sender.send(READY)
    try:
        profile = Profile.of(load_module(path))
    except Exception as error:
        sender.send(("naive", f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"))
        return
    try:
        sender.send(first_failure(profile, checks) or ("", ""))
    except Exception as error:  # the definition itself fails, which the forms are held against
        sender.send(("naive", f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"))


def _settle() -> None:
    """Silence, no core files and, where the system says how much memory this process has, a limit to it."""
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if STATM.exists():
        used = int(STATM.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))


if __name__ == "__main__":
    main()
