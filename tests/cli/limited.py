"""Runs commands of recgen in processes with little time and memory, and says how they ended.

    python -m tests.cli.limited < jobs.json

A job is a list of commands, a command a list of arguments; every job has a process of its own. recgen and what it
imports are loaded once, before the limits are set and the processes divide: `seconds` and `megabytes` of a result are
those that the job's commands took. `codes` are their exit codes.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import tempfile
import traceback
from typing import Any

from recgen.cli import app
from recgen.compiler import compile_spec
from recgen.spec import read_text

SECONDS, BYTES = 20, 1 << 30  # where a job is ended; what it may take is up to the tests
CRASHED = 99
MARK = "<end of the command>"


def warm() -> None:
    """What commands import at their first use is imported."""
    compile_spec(read_text("name: mine\ninputs: {g: B T H}\ndecay: {type: gated, log: logsigmoid(g)}\n"))
    importlib.import_module("recgen.loader")


def run(job: list[list[str]]) -> dict[str, Any]:
    with tempfile.TemporaryFile() as out:
        child = os.fork()
        if child == 0:
            _do(job, out.fileno())
        _, status, usage = os.wait4(child, 0)
        out.seek(0)
        *codes, text = out.read().decode("utf-8", "replace").split(MARK)
        return {
            "ended": os.waitstatus_to_exitcode(status),
            "codes": [int(part.rpartition("\n")[2]) for part in codes],
            "text": text + "".join(codes),
            "seconds": usage.ru_utime + usage.ru_stime,
            "megabytes": usage.ru_maxrss / 1024,
        }


def _do(job: list[list[str]], out: int) -> None:
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(out, 2)
        for arguments in job:
            code = _code(arguments)
            sys.stderr.flush()
            sys.stdout.write(f"\n{code}{MARK}")
            sys.stdout.flush()
        os._exit(0)
    finally:
        os._exit(CRASHED)


def _code(arguments: list[str]) -> int:
    try:
        app(arguments, prog_name="recgen")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else CRASHED
    except BaseException:
        traceback.print_exc()
    return CRASHED


if __name__ == "__main__":
    warm()
    sys.stdout.write(json.dumps([run(job) for job in json.load(sys.stdin)]))
