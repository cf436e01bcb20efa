"""The command run in this process, with a stand-in for the compiler: what is tested here is the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from recgen.cli import app


@pytest.fixture
def recgen_command(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """recgen_command("check", path) → the result, with .exit_code, .stdout, .stderr; other exceptions are raised."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: Any) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)

    return run


@pytest.fixture
def small_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every spec compiles at once, to a few lines that hold its name and decay."""

    def compile_spec(spec: Any) -> str:
        return f'NAME = "{spec.name}"\n' + "\n" * 3 + f'LOG_DECAY = "{spec.decay.log.tree}"\n'

    monkeypatch.setattr("recgen.compiler.compile_spec", compile_spec)


@pytest.fixture
def write_spec(tmp_path: Path) -> Callable[..., Path]:
    """write_spec("a", "decay: …") is the path of a spec called a with those lines."""

    def write(name: str, *lines: str, file: str | None = None) -> Path:
        path = tmp_path / (file or f"{name}.yaml")
        path.write_text("\n".join([f"name: {name}", *lines, ""]))
        return path

    return write
