"""How recgen starts Python: never with modules from the current folder, which may be called like Python's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any


class ProcessFailed(RuntimeError):
    """A process of recgen's own died, or said what is no answer; the message holds its words."""


def command(module: str, *arguments: str) -> list[str]:
    """`python -m module`, where -P keeps the current folder off the path."""
    return [sys.executable, "-P", "-m", module, *arguments]


def search_path(first: Path | None = None) -> str:
    """PYTHONPATH for such a process: where this one finds its modules, after the folder `first`."""
    return os.pathsep.join(str(place) for place in (first, *sys.path) if place)


def spawned(module: str, settled: Mapping[str, str]) -> tuple[subprocess.Popen[str], IO[str]]:
    """Such a process in this environment, with pipes for tasks and answers; and the file of what it says on standard
    error, so that it never waits for a reader of that. The caller closes all three.
    """
    errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115, closed by the caller
    pipe = subprocess.PIPE
    return subprocess.Popen(command(module), stdin=pipe, stdout=pipe, stderr=errors, text=True, env=settled), errors


def read_answer(module: str, line: str) -> dict[str, Any]:
    """What a process has sent as one line of JSON. ProcessFailed where it has printed something else."""
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if isinstance(found, dict):
        return found
    said = line.strip()[:200]
    raise ProcessFailed(f"the process of {module} printed {said!r} where an answer was due")
