"""Importing recgen: cheap, and without what only some of its uses need."""

from __future__ import annotations

import subprocess
import sys

import pytest

import recgen

HEAVY = ("torch", "triton", "sympy", "numpy", "ruamel", "pydantic", "jinja2", "typer", "rich")


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60).stdout


def test_importing_recgen_imports_nothing_heavy() -> None:
    assert python(f"import recgen, sys; print([name for name in {HEAVY} if name in sys.modules])") == "[]\n"


def test_reading_a_spec_needs_no_torch() -> None:
    code = "import recgen, sys; recgen.read_dict({'name': 'plain'}); print('torch' in sys.modules)"
    assert python(code) == "False\n"


def test_the_command_line_starts_without_sympy_and_torch() -> None:
    assert python("import recgen.cli, sys; print('torch' in sys.modules, 'sympy' in sys.modules)") == "False False\n"


@pytest.mark.parametrize("name", recgen.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(recgen, name) is not None
    assert name in dir(recgen)


def test_another_name_is_not() -> None:
    with pytest.raises(AttributeError, match="no attribute 'laod'"):
        _ = recgen.laod  # type: ignore[attr-defined]
