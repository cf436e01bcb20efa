"""A failure comes with a script that shows it: run, it exits with 1; with the fault mended, it exits with 0."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from recgen.verify import verify_module

from .conftest import HANDMADE, broken


def write(folder: Path, script: str) -> Path:
    path = folder / "failure.py"
    path.write_text(script)
    return path


def run_here(script: str, folder: Path) -> object:
    """What the script exits with, run as a program in this process, which has torch already."""
    path = write(folder, script)
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")
    return ended.value.code


def test_the_script_holds_its_numbers_and_shows_the_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = broken(tmp_path, "(denominator + 1e-6)[..., None]", "(denominator.detach() + 1e-6)[..., None]")
    [failure] = verify_module(module, ["chunk"], 0, 1).failures
    assert "torch.tensor(" in failure.snippet
    assert "import recgen" not in failure.snippet and "from recgen" not in failure.snippet
    script = tmp_path / "alone.py"
    script.write_text(failure.snippet)
    shown = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert shown.returncode == 1, shown.stderr
    assert "gradient" in shown.stdout and "WRONG" in shown.stdout and "should be" in shown.stdout
    (tmp_path / "broken.py").write_text(HANDMADE.read_text())
    assert not run_here(failure.snippet, tmp_path)
    assert "WRONG" not in capsys.readouterr().out


def test_a_form_that_is_called_token_by_token(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = "o, state = _token(*map(_Dense.apply, (r, u, {}, a, c))"
    [failure] = verify_module(broken(tmp_path, call.format("x"), call.format("2 * x")), ["step"], 0, 1).failures
    assert run_here(failure.snippet, tmp_path) == 1
    assert "output: relative error" in capsys.readouterr().out


def test_an_exception_is_seen_where_it_was_raised(tmp_path: Path) -> None:
    line = "    length = r.shape[1]\n"
    [failure] = verify_module(broken(tmp_path, line, line + "    length[0]\n"), ["chunk"], 0, 1).failures
    with pytest.raises(TypeError, match="not subscriptable"):
        runpy.run_path(str(write(tmp_path, failure.snippet)), run_name="__main__")
