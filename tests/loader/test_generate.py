"""recgen.generate: the source, in a file of the caller's choosing. The compiler is a stand-in (see conftest.py)."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import recgen

Retention = Callable[..., dict[str, Any]]
ONES = ([1.0] * 3,) * 3
WANTED = {0.9: [1.0, 1.9, 2.71], 0.5: [1.0, 1.5, 1.75]}

pytestmark = pytest.mark.usefixtures("compiled")


@pytest.mark.parametrize(
    ("out", "file"),
    [
        ("mine.py", "mine.py"),
        ("folder/mine.py", "folder/mine.py"),
        ("folder", "folder/retention.py"),
        ("a.folder/", "a.folder/retention.py"),
        (".", "retention.py"),
    ],
)
def test_out_is_a_file_or_a_folder(out: str, file: str, tmp_path: Path, retention: Retention) -> None:
    assert recgen.generate(retention(0.9), tmp_path / out) == tmp_path / file
    assert "S = 0.9 S" in (tmp_path / file).read_text()


def test_it_is_the_source_that_load_runs(tmp_path: Path, retention: Retention, cache: Path) -> None:
    path = recgen.generate(retention(0.9), tmp_path / "out")
    recgen.load(retention(0.9))
    [cached] = cache.iterdir()
    assert cached.read_text().startswith(path.read_text())


def test_generating_twice_gives_the_same_bytes(tmp_path: Path, retention: Retention) -> None:
    first, second = (recgen.generate(retention(0.9), tmp_path / name) for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("way", ["load_file", "reload"])
def test_a_name_generated_again_with_another_decay(
    way: str, tmp_path: Path, retention: Retention, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    name = f"again_{way}"
    for decay in (0.9, 0.5, 0.9, 0.5):
        path = recgen.generate(retention(decay, name), tmp_path)
        module = recgen.load_file(path) if way == "load_file" else importlib.reload(importlib.import_module(name))
        assert module.operator(*ONES) == WANTED[decay]


def test_two_folders_with_one_name(tmp_path: Path, retention: Retention) -> None:
    modules = {
        decay: recgen.load_file(recgen.generate(retention(decay), tmp_path / f"decay_{decay}")) for decay in WANTED
    }
    for decay, module in modules.items():
        assert module.operator(*ONES) == WANTED[decay]


def test_a_bad_spec_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(recgen.SpecError):
        recgen.generate({"name": "bad", "decay": {"type": "fixed", "valeu": 0.9}}, tmp_path / "bad.py")
    assert not (tmp_path / "bad.py").exists()
