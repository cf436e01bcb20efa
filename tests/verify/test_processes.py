"""A process that works on a task: its answers, and what it says when it fails, however much that is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from recgen.cost.process import Worker
from recgen.emit.render import formatted
from recgen.python import ProcessFailed, search_path
from recgen.verify.processes import Process

TALKS = """
import json, sys
task = json.loads(sys.stdin.readline())
for n in range(task["lines"]):
    print("x" * 1000, file=sys.stderr)
print(json.dumps({"done": task["lines"]}) if task["code"] != 4 else task["aside"], flush=True)
sys.exit(task["code"])
"""


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "talks.py").write_text(TALKS)
    monkeypatch.syspath_prepend(str(tmp_path))


def answers(module: str = "talks", **task: Any) -> list[dict[str, Any]]:
    process = Process(module, task)
    try:
        return list(process.answers())
    finally:
        process.close()


def test_one_that_says_much_does_not_wait_for_a_reader() -> None:
    assert answers(lines=1000, code=0) == [{"done": 1000}]


def test_one_that_fails_says_why() -> None:
    with pytest.raises(RuntimeError, match=r"the process of talks failed:\nx+\nx+$"):
        answers(lines=2, code=3)
    with pytest.raises(RuntimeError, match="No module named nowhere_to_be_found"):
        answers("nowhere_to_be_found", lines=2, code=3)


@pytest.mark.parametrize("aside", ["by the way", "17"])
def test_one_that_prints_something_else(aside: str) -> None:
    with pytest.raises(ProcessFailed, match=f"the process of talks printed '{aside}' where an answer was due"):
        answers(lines=0, code=4, aside=aside)


@pytest.mark.parametrize("started", ["talks", "ruff"])
def test_modules_of_the_current_folder_are_not_found(
    started: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither by a process that answers, nor by one for a tool."""
    here = tmp_path / "here"
    here.mkdir()
    for name in ("json", "random", "sysconfig"):
        (here / f"{name}.py").write_text("raise SystemExit('imported from the current folder')")
    monkeypatch.chdir(here)
    if started == "ruff":
        assert formatted("x  = 1") == "x = 1\n"
    else:
        assert answers(lines=1, code=0) == [{"done": 1}]
        with Worker("talks", interpret=False) as worker:
            assert worker.ask({"lines": 1, "code": 0}) == {"done": 1}


def test_the_environment_cannot_bring_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", ["", "/a", "/b"])
    assert search_path(Path("/first")) == os.pathsep.join(["/first", "/a", "/b"])


def test_one_that_is_closed_early_ends() -> None:
    process = Process("talks", {"lines": 10**9, "code": 0})
    process.close()
    assert process._process.returncode != 0
