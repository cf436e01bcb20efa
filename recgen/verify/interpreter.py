"""Running the Triton cases in a process of their own, where TRITON_INTERPRET=1 is set before Triton is imported.

The process reads its task as one line of JSON and answers in lines of JSON: progress, and a report at the end.
Started as `python -m recgen.verify.interpreter`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

from .profile import Profile, load_module
from .report import Report

_SETTLED = {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}


class Interpreted:
    """A verification of one module's Triton forms under way in another process."""

    def __init__(self, process: subprocess.Popen[str], advance: Callable[[int, int, str], None]) -> None:
        self._process, self._advance = process, advance
        self._report: Report | None = None
        self._errors: list[str] = []
        self._readers = [threading.Thread(target=read, daemon=True) for read in (self._read, self._read_errors)]
        for reader in self._readers:
            reader.start()

    @classmethod
    def start(cls, profile: Profile, options: dict[str, Any], advance: Callable[[int, int, str], None]) -> Interpreted:
        """Start verifying the module file of `profile` with `options` (fields of driver.Options)."""
        process = subprocess.Popen(
            [sys.executable, "-m", "recgen.verify.interpreter"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **_SETTLED, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps({"path": profile.path, "options": options}) + "\n")
        process.stdin.close()
        return cls(process, advance)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            if "report" in message:
                self._report = Report.from_dict(message["report"])
            else:
                self._advance(message["done"], message["expected"], message["text"])

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        self._errors.extend(self._process.stderr)

    def result(self) -> Report:
        """Wait for the report. RuntimeError with the process's own words when it died."""
        for reader in self._readers:
            reader.join()
        if self._process.wait() != 0 or self._report is None:
            raise RuntimeError("the interpreter process failed:\n" + "".join(self._errors[-40:]))
        return self._report

    def stop(self) -> None:
        """End the process if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def main() -> None:
    """Verify what standard input names, in this process."""
    from .driver import Options, _Run

    task = json.loads(sys.stdin.readline())
    given = {name: tuple(v) if isinstance(v, list) else v for name, v in task["options"].items()}
    answers = sys.stdout
    sys.stdout = sys.stderr  # a kernel's own prints must not mix with the answers
    last = [0, 0]

    def progress(done: int, total: int, text: str) -> None:
        message = {"done": done - last[0], "expected": total - last[1], "text": text}
        last[:] = done, total
        print(json.dumps(message), file=answers, flush=True)

    report = _Run(Profile.of(load_module(task["path"])), Options(**given), progress).everything()
    print(json.dumps({"report": report.as_dict()}), file=answers, flush=True)


if __name__ == "__main__":
    main()
