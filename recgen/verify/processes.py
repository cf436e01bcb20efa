"""A process of its own that works on one task: the task goes in as one line of JSON, answers come out as others."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from typing import Any

from recgen.python import ProcessFailed, read_answer, search_path, spawned

_SETTLED = {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
SHOWN = 40  # lines of what a process that failed has said


class Process:
    """`python -m module` at work on a task, where Triton interprets its kernels."""

    def __init__(self, module: str, task: dict[str, Any]) -> None:
        self._module = module
        self._process, self._errors = spawned(module, {**os.environ, **_SETTLED, "PYTHONPATH": search_path()})
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it died at once: `answers` says why
            self._process.stdin.write(json.dumps(task) + "\n")
            self._process.stdin.flush()
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def answers(self) -> Iterator[dict[str, Any]]:
        """Its answers, as they come. ProcessFailed with the process's own words when it fails."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            yield read_answer(self._module, line)
        if self._process.wait() != 0:
            self._errors.seek(0)
            said = "\n".join(self._errors.read().splitlines()[-SHOWN:])
            raise ProcessFailed(f"the process of {self._module} failed:\n{said}")

    def kill(self) -> None:
        """End it if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        """End it if it still runs, and let go of what it has said."""
        self.kill()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._errors.close()
