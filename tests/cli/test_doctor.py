"""recgen doctor: what it finds, and that it fails where recgen cannot work."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

import recgen.doctor
from recgen.doctor import checks
from recgen.doctor.checks import CHECKS, Check, NotThere, examine

Command = Callable[..., Result]
REAL = {check.what: check for check in CHECKS}


def absent() -> str:
    raise NotThere("none is here")


def broken() -> str:
    raise ValueError("first line\nit is broken")


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """looked_at(check, …) makes these the checks."""

    def replace(*found: Check) -> None:
        monkeypatch.setattr(recgen.doctor, "CHECKS", found)

    return replace


WORKS = Check("good", lambda: "it is there", "nothing to do", True)


@pytest.mark.parametrize(
    ("other", "code", "shown"),
    [
        (Check("other", absent, "get one", False), 0, "– other           none is here\n                  fix: get one"),
        (Check("other", absent, "get one", True), 1, "✗ other           none is here\n                  fix: get one"),
        (Check("other", broken, "mend it", True), 1, "✗ other           ValueError: it is broken"),
        (Check("other", broken, "mend it", False), 0, "✗ other           ValueError: it is broken"),
    ],
)
def test_the_exit_code_says_whether_recgen_works(
    other: Check, code: int, shown: str, recgen_command: Command, looked_at: Callable[..., None]
) -> None:
    looked_at(WORKS, other)
    result = recgen_command("doctor")
    assert result.exit_code == code
    assert "✓ good            it is there\n" in result.stdout and shown in result.stdout
    assert ("cannot work here" in result.stdout) == bool(code)


def test_json(recgen_command: Command, looked_at: Callable[..., None], tmp_path: Path) -> None:
    looked_at(WORKS, Check("other", absent, "get one", True))
    printed = recgen_command("doctor", "--json", "-")
    assert printed.exit_code == 1
    found = json.loads(printed.stdout)
    assert found["ok"] is False
    assert found["checks"][0] == {"what": "good", "needed": True, "state": "works", "found": "it is there", "fix": ""}
    assert found["checks"][1]["fix"] == "get one" and found["checks"][1]["state"] == "broken"
    file = tmp_path / "new" / "doctor.json"
    written = recgen_command("doctor", "--json", file)
    assert json.loads(file.read_text()) == found
    assert written.exit_code == 1 and "✓ good" in written.stdout and f"wrote {file}" in written.stdout


@pytest.mark.parametrize("what", ["python", "packages", "torch", "ruff", "recgen's files", "an operator"])
def test_what_this_suite_needs_is_found(what: str) -> None:
    finding = examine(REAL[what])
    assert finding.state == "works" and finding.needed, finding


@pytest.mark.interpreter
def test_the_interpreter_is_tried() -> None:
    pytest.importorskip("triton")
    assert examine(REAL["interpreter"]).state == "works"


@pytest.mark.offline
def test_the_compilers_are_tried() -> None:
    pytest.importorskip("triton")
    finding = examine(REAL["compilers"])
    assert finding.state == "works" and "gfx942" in finding.found, finding


def test_a_package_that_is_too_old_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "version", lambda name: "0.1")
    finding = examine(REAL["packages"])
    assert finding.state == "broken" and "numpy 0.1 is installed, >=1.26 needed" in finding.found
    assert examine(REAL["torch"]).state == "broken"
    assert examine(REAL["triton"]).state == "absent"


def test_a_cache_that_cannot_be_written_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setenv("RECGEN_CACHE", str(tmp_path / "new"))
    assert examine(REAL["cache"]).found == str(tmp_path / "new")
    assert list((tmp_path / "new").iterdir()) == []
    (tmp_path / "file").touch()
    monkeypatch.setenv("RECGEN_CACHE", str(tmp_path / "file" / "cache"))
    finding = examine(REAL["cache"])
    assert finding.state == "absent" and "RECGEN_CACHE" in finding.fix


def test_an_operator_that_computes_something_else_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = (
        "import torch\ndef sample_inputs(**_): return {'x': torch.ones(3)}\n"
        "def naive(x): return x, None\ndef chunk(x): return 2 * x, None\n"
    )
    monkeypatch.setattr("recgen.compiler.compile_spec", lambda spec: wrong)
    finding = examine(REAL["an operator"])
    assert finding.state == "broken" and "the chunk form is off by 1.0e+00" in finding.found
