"""Trying other versions of Triton, without fetching any: pip and the versions are stand-ins."""

from __future__ import annotations

import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

from recgen.cost import versions
from recgen.cost.jobs import Job
from recgen.cost.versions import Outcome, attempt, install, newest_of_each_minor, published

ROOT = Path(__file__).resolve().parents[2]
JOBS = [Job(str(ROOT / "generated" / "hgrn.py"), "recurrent", "sm_90", K=16, V=16, T=16)]


def answering(text: str, code: int = 0, error: str = ""):
    return lambda *arguments: subprocess.CompletedProcess(arguments, code, text, error)


def test_the_newest_of_each_minor_version_from_3_3_on() -> None:
    found = newest_of_each_minor(["3.10.0", "3.9.0", "3.5.0", "3.5.1", "3.5.10", "3.3.1", "3.2.0", "2.3.1", "4.0.0rc1"])
    assert found == ["3.3.1", "3.5.10", "3.9.0", "3.10.0"]


def test_what_pip_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "triton (3.5.1)\nAvailable versions: 3.5.1, 3.5.0, 3.4.0\n  INSTALLED: 3.5.1\n"
    monkeypatch.setattr(versions, "_pip", answering(text))
    assert published() == ["3.5.1", "3.5.0", "3.4.0"]
    monkeypatch.setattr(versions, "_pip", answering("", 1, "no index"))
    with pytest.raises(RuntimeError, match="no index"):
        published()


def test_a_version_is_installed_once_and_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[tuple[str, ...]] = []

    def pip(*arguments: str) -> subprocess.CompletedProcess[str]:
        asked.append(arguments)
        (tmp_path / "3.5.1" / "triton-3.5.1.dist-info").mkdir(parents=True)
        return subprocess.CompletedProcess(arguments, 0, "", "")

    monkeypatch.setattr(versions, "_pip", pip)
    assert install("3.5.1", tmp_path) == install("3.5.1", tmp_path) == tmp_path / "3.5.1"
    assert len(asked) == 1 and {"--no-deps", "triton==3.5.1"} <= set(asked[0])
    monkeypatch.setattr(versions, "_pip", answering("", 1, "reading\nno such release\n"))
    with pytest.raises(RuntimeError, match="cannot install triton 3.6.0: no such release"):
        install("3.6.0", tmp_path)


def test_a_version_that_cannot_be_imported_is_named_with_its_error(tmp_path: Path) -> None:
    broken = tmp_path / "9.9.9"
    (broken / "triton").mkdir(parents=True)
    (broken / "triton" / "__init__.py").write_text("raise ImportError('made for another Python')\n")
    outcome = attempt("9.9.9", broken, JOBS)
    assert outcome.kernels == 0 and "made for another Python" in str(outcome)
    assert str(outcome).startswith("triton 9.9.9: FAILS")


def test_the_version_is_the_one_that_was_asked_for(tmp_path: Path) -> None:
    empty = tmp_path / "0.0.1"
    empty.mkdir()
    assert f"has triton {version('triton')}" in str(attempt("0.0.1", empty, JOBS))


def test_a_version_that_compiles(tmp_path: Path) -> None:
    place = tmp_path / version("triton")
    place.mkdir()
    outcome = attempt(version("triton"), place, JOBS)
    assert outcome.failures == () and outcome.kernels >= 1


def test_one_that_fails_fails_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(versions, "published", lambda: ["3.3.1", "3.4.0"])
    monkeypatch.setattr(versions, "install", lambda version, folder: folder / version)
    monkeypatch.setattr(versions, "sample", lambda operators, targets: JOBS)
    failing: tuple[str, ...] = ()
    monkeypatch.setattr(
        versions, "attempt", lambda version, place, jobs: Outcome(version, 9, failing if version == "3.3.1" else ())
    )
    assert versions.main(["--folder", str(tmp_path)]) == 0
    failing = ("gla, sm_90, chunk, _chunk_forward: PTXASError",)
    assert versions.main(["--folder", str(tmp_path)]) == 1
    assert "triton 3.4.0: all 9 kernels compile" in capsys.readouterr().out
