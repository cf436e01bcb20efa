"""recgen.load: compiled once, found again, never mixed up. The compiler is a stand-in (see conftest.py)."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import recgen
from recgen.loader import cache as cache_module
from tests.loader.conftest import forget

Retention = Callable[..., dict[str, Any]]
ONES = ([1.0] * 3,) * 3
WANTED = {0.9: [1.0, 1.9, 2.71], 0.5: [1.0, 1.5, 1.75]}


@pytest.fixture(autouse=True)
def new_process(compiled: list[str]) -> None:
    cache_module._warn_once.cache_clear()
    cache_module._folder_of_this_process.cache_clear()


@pytest.fixture
def blocked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that nobody can write, not even root: it would lie inside a file."""
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "cache"
    monkeypatch.setenv("RECGEN_CACHE", str(folder))
    return folder


def test_two_specs_of_one_name_are_two_modules(retention: Retention) -> None:
    modules = {decay: recgen.load(retention(decay)) for decay in WANTED}
    for decay, wanted in WANTED.items():
        assert modules[decay].operator(*ONES) == wanted


def test_two_files_of_one_name_in_two_folders(tmp_path: Path) -> None:
    for decay, wanted in WANTED.items():
        folder = tmp_path / str(decay)
        folder.mkdir()
        path = folder / "retention.yaml"
        path.write_text(f"name: retention\ndecay: {{type: fixed, value: {decay}}}\n")
        assert recgen.load(path).operator(*ONES) == wanted


def test_a_changed_file_is_loaded_anew_and_back_again(tmp_path: Path, compiled: list[str]) -> None:
    path = tmp_path / "retention.yaml"
    for decay in (0.9, 0.5, 0.9):
        path.write_text(f"name: retention\ndecay: {{type: fixed, value: {decay}}}\n")
        assert recgen.load(str(path)).operator(*ONES) == WANTED[decay]
    assert len(compiled) == 2


def test_within_a_process_it_is_one_module(retention: Retention, compiled: list[str]) -> None:
    assert recgen.load(retention(0.9)) is recgen.load(recgen.read_dict(retention(0.9)))
    assert compiled == ["retention"]


def test_the_next_process_finds_it_in_the_cache(retention: Retention, compiled: list[str], cache: Path) -> None:
    recgen.load(retention(0.9))
    forget()
    module = recgen.load(retention(0.9))
    assert compiled == ["retention"]
    assert module.__file__ == str(next(cache.glob("retention_*.py")))
    assert module.operator(*ONES) == WANTED[0.9]


def test_the_name_holds_the_hash(retention: Retention) -> None:
    module = recgen.load(retention(0.9))
    assert module.__name__ == f"recgen_{Path(str(module.__file__)).stem}"
    assert sys.modules[module.__name__] is module


def test_the_source_can_be_inspected(retention: Retention, cache: Path) -> None:
    module = recgen.load(retention(0.9))
    for file in cache.iterdir():
        file.unlink()
    assert inspect.getsource(module.operator).startswith("def operator(q, k, v):\n")


def cut(text: str) -> str:
    return text[: len(text) // 2]


def edited(text: str) -> str:
    return text.replace("0.9", "0.1")


def emptied(text: str) -> str:
    return ""


@pytest.mark.parametrize("damage", [cut, edited, emptied])
def test_a_damaged_file_is_compiled_again(
    damage: Callable[[str], str], retention: Retention, compiled: list[str], cache: Path
) -> None:
    recgen.load(retention(0.9))
    [file] = cache.glob("*.py")
    file.write_text(damage(file.read_text()))
    forget()
    assert recgen.load(retention(0.9)).operator(*ONES) == WANTED[0.9]
    assert len(compiled) == 2


def test_another_recgen_or_template_is_another_module(
    retention: Retention, compiled: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    recgen.load(retention(0.9))
    monkeypatch.setattr(recgen, "__version__", "999")
    recgen.load(retention(0.9))
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "module.py.jinja").write_text("{{ source }}")
    monkeypatch.setattr("recgen.resources.templates_dir", lambda: tmp_path / "templates")
    recgen.load(retention(0.9))
    assert len(compiled) == 3


def test_a_cache_that_cannot_be_written_only_costs_time(
    blocked: Path, retention: Retention, compiled: list[str]
) -> None:
    with pytest.warns(RuntimeWarning, match="RECGEN_CACHE") as said:
        module = recgen.load(retention(0.9))
    assert str(blocked) in str(said[0].message)
    assert module.operator(*ONES) == WANTED[0.9]
    assert "return outputs" in inspect.getsource(module.operator)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert recgen.load(retention(0.9)) is module
        assert recgen.load(retention(0.5)).operator(*ONES) == WANTED[0.5]
    assert compiled == ["retention", "retention"]


def test_a_full_cache_is_still_read(
    retention: Retention, compiled: list[str], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recgen.load(retention(0.9))
    forget()

    def refuse(path: Path, text: str) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(cache_module, "write_atomically", refuse)
    assert recgen.load(retention(0.9)).operator(*ONES) == WANTED[0.9]
    assert compiled == ["retention"]


def test_threads_share_one_compilation(retention: Retention, compiled: list[str]) -> None:
    with ThreadPoolExecutor(8) as pool:
        modules = list(pool.map(recgen.load, [retention(0.9)] * 16))
    assert len({id(module) for module in modules}) == 1
    assert compiled == ["retention"]


def test_a_spec_can_be_a_catalogue_name() -> None:
    assert recgen.load("linear_attention").NAME == "linear_attention"


@pytest.mark.parametrize(
    ("spec", "error", "said"),
    [
        ("retnett", FileNotFoundError, "did you mean retnet"),
        ("nowhere/retnet.yaml", FileNotFoundError, "nowhere/retnet.yaml"),
        (Path("retnet"), FileNotFoundError, "retnet"),
        (".", FileNotFoundError, "folder"),
        (3, TypeError, "a path, a catalogue name, a dict or a Spec, not int"),
    ],
)
def test_what_is_not_a_spec_is_said(spec: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        recgen.load(spec)
