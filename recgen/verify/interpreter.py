"""Running the Triton cases in a process of their own, where TRITON_INTERPRET=1 is set before Triton is imported.

The process reads its task as one line of JSON and answers in lines of JSON: progress, and a report at the end.
Started as `python -m recgen.verify.interpreter`.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from typing import Any

from recgen.python import ProcessFailed

from .processes import Process
from .profile import Profile, load_module
from .report import Report


class Interpreted:
    """A verification of one module's Triton forms under way in another process."""

    def __init__(self, process: Process, advance: Callable[[int, int, str], None]) -> None:
        self._process, self._advance = process, advance
        self._report: Report | None = None
        self._error: Exception | None = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @classmethod
    def start(cls, profile: Profile, options: dict[str, Any], advance: Callable[[int, int, str], None]) -> Interpreted:
        """Start verifying the module file of `profile` with `options` (fields of driver.Options)."""
        return cls(Process("recgen.verify.interpreter", {"path": profile.path, "options": options}), advance)

    def _read(self) -> None:
        try:
            for message in self._process.answers():
                if "report" in message:
                    self._report = Report.from_dict(message["report"])
                else:
                    self._advance(message["done"], message["expected"], message["text"])
        except Exception as error:  # for the thread that asks for the result
            self._error = error
            self._process.kill()

    def result(self) -> Report:
        """Wait for the report. ProcessFailed with the process's own words when it died."""
        self._reader.join()
        if self._error is not None:
            raise self._error
        if self._report is None:
            raise ProcessFailed("the process that interprets kernels ended without a report")
        return self._report

    def stop(self) -> None:
        """End the process if it still runs."""
        self._process.kill()
        self._reader.join()
        self._process.close()


def main() -> None:
    """Verify what standard input names, in this process."""
    answers = sys.stdout
    sys.stdout = sys.stderr  # a kernel's own prints must not mix with the answers
    from .driver import Options, _Run

    task = json.loads(sys.stdin.readline())
    given: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in task["options"].items()}
    last = [0, 0]

    def progress(done: int, total: int, text: str) -> None:
        message = {"done": done - last[0], "expected": total - last[1], "text": text}
        last[:] = done, total
        print(json.dumps(message), file=answers, flush=True)

    report = _Run(Profile.of(load_module(task["path"])), Options(**given), progress).everything()
    print(json.dumps({"report": report.as_dict()}), file=answers, flush=True)


if __name__ == "__main__":
    main()
