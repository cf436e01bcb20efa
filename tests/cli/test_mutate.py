"""`recgen mutate`: what is asked of the survey, and what its share of caught faults means for the exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import Result

from recgen.verify.mutation.faults import Fault
from recgen.verify.mutation.report import Survey, Tried

Command = Callable[..., Result]


@pytest.fixture
def half(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A survey in which one of two faults is caught; what it was asked for is in the dict."""
    asked: dict[str, Any] = {}

    def run(module: object, **options: Any) -> Survey:
        asked.update(options)
        fault = Fault("sign lost", "_chunk", 12, "-x", "x", 0, 2)
        caught = [Tried(fault, "chunk on torch", "output: relative error 1"), Tried(fault, "", "")]
        return Survey("gla", "gla.py", 3, 9, 5, 2, 4, tried=caught)

    monkeypatch.setattr("recgen.verify.mutation.run", run)
    monkeypatch.setattr("recgen.loader.load", lambda spec: SimpleNamespace())
    return asked


@pytest.mark.parametrize(("least", "code"), [((), 0), (("--at-least", "50"), 0), (("--at-least", "51"), 1)])
def test_survivors_fail_only_where_a_share_is_asked_for(
    least: tuple[str, ...], code: int, half: dict[str, Any], recgen_command: Command, tmp_path: Path
) -> None:
    file = tmp_path / "new" / "survey.json"
    result = recgen_command("mutate", "gla", "--limit", "7", "--seed", "3", "--budget", "5", "--json", file, *least)
    assert result.exit_code == code
    assert "survived" in result.stdout and "1 of 2 faults caught" in result.stdout
    assert {name: half[name] for name in ("limit", "seed", "budget")} == {"limit": 7, "seed": 3, "budget": 5.0}
    written = json.loads(file.read_text())
    assert written["share"] == 0.5 and written["ok"] is (code == 0)
    assert f"wrote {file}" in result.stdout


def test_a_wrong_module_fails(half: dict[str, Any], recgen_command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Survey("gla", "gla.py", 0, wrong=["chunk on torch: output: relative error 1"])
    monkeypatch.setattr("recgen.verify.mutation.run", lambda module, **options: wrong)
    result = recgen_command("mutate", "gla")
    assert result.exit_code == 1
    assert "chunk on torch: output" in result.stdout


def test_where_nothing_can_be_tried_it_is_said(
    half: dict[str, Any], recgen_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(module: object, **options: Any) -> Survey:
        raise RuntimeError("a process to try a fault in cannot be set up: no limits")

    monkeypatch.setattr("recgen.verify.mutation.run", fails)
    result = recgen_command("mutate", "gla")
    assert result.exit_code == 1 and result.stdout == ""
    assert "no faults could be tried: a process to try a fault in cannot be set up: no limits" in result.stderr
