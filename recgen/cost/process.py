"""Processes of their own for Triton, which reads TRITON_INTERPRET once, when it is imported: one that compiles, one
that interprets. Tasks go in and answers come out as lines of JSON.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from recgen.python import ProcessFailed, read_answer, search_path, spawned

_ALONE = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}


class Worker:
    """A process that answers tasks one after the other; leaving the block ends it.

    with Worker("recgen.cost.compile", interpret=False) as worker:
        worker.ask({...})
    """

    def __init__(
        self, module: str, *, interpret: bool, env: Mapping[str, str] | None = None, first: Path | None = None
    ) -> None:
        """`first` is a folder whose packages the process finds before all others."""
        kept = {name: text for name, text in os.environ.items() if name != "TRITON_INTERPRET"}
        settled = {**kept, **_ALONE, "PYTHONPATH": search_path(first), **(env or {})}
        self._module = module
        self._process, self._errors = spawned(module, settled | ({"TRITON_INTERPRET": "1"} if interpret else {}))

    def ask(self, task: Mapping[str, Any]) -> Any:
        """The answer to one task. ProcessFailed with the process's own words when it dies."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(task) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self._process.wait()
            self._errors.seek(0)
            said = self._errors.read()[-4000:]
            raise ProcessFailed(f"the process of {self._module} ended on {dict(task)}:\n{said}")
        return read_answer(self._module, line)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is not None:
            self._process.kill()
        assert self._process.stdin is not None and self._process.stdout is not None
        for pipe in (self._process.stdin, self._process.stdout):
            pipe.close()
        self._process.wait()
        self._errors.close()


def serve(answer: Callable[[Any], Any]) -> None:
    """Answer every task on standard input. What the task itself prints goes to standard error."""
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=answers, flush=True)
