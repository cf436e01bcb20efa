"""A loaded module knows its source: Triton reads it long after import."""

from __future__ import annotations

import inspect
import linecache
import pickle
import sys
import traceback
from pathlib import Path

import pytest

from recgen.loader import load_file

SOURCE = """\
from typing import NamedTuple


class State(NamedTuple):
    S: float


def decay():
    return {decay}


def fail():
    raise ValueError("decay {decay}")
"""


def write(path: Path, decay: float) -> Path:
    path.write_text(SOURCE.format(decay=decay))
    return path


def test_a_file_is_the_same_module_until_it_changes(tmp_path: Path) -> None:
    path = write(tmp_path / "gla.py", 0.9)
    first = load_file(path)
    assert load_file(str(path)) is first
    write(path, 0.5)
    second = load_file(path)
    assert (first.decay(), second.decay()) == (0.9, 0.5)


def test_the_same_file_in_two_folders_is_two_modules(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    assert load_file(write(tmp_path / "a" / "gla.py", 0.9)) is not load_file(write(tmp_path / "b" / "gla.py", 0.9))


@pytest.mark.parametrize("fate", ["kept", "rewritten", "removed"])
def test_the_source_of_a_function_is_what_runs(fate: str, tmp_path: Path) -> None:
    path = write(tmp_path / "gla.py", 0.9)
    module = load_file(path)
    if fate == "rewritten":
        path.write_text("# a longer file now\n\n\n" + SOURCE.format(decay=0.5))
    elif fate == "removed":
        path.unlink()
    linecache.clearcache()
    assert inspect.getsource(module.decay) == "def decay():\n    return 0.9\n"


def test_a_traceback_shows_the_line_that_ran(tmp_path: Path) -> None:
    path = write(tmp_path / "gla.py", 0.9)
    module = load_file(path)
    write(path, 0.5)
    with pytest.raises(ValueError) as caught:
        module.fail()
    shown = "".join(traceback.format_exception(caught.value))
    assert str(path) in shown
    assert 'raise ValueError("decay 0.9")' in shown


def test_loading_a_file_does_not_disturb_its_ordinary_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "ordinary_import.py", 0.9)
    load_file(path)
    write(path, 0.25)
    monkeypatch.syspath_prepend(tmp_path)
    import ordinary_import  # type: ignore[import-not-found]

    assert ordinary_import.decay() == 0.25
    assert "0.25" in inspect.getsource(ordinary_import.decay)


def test_the_module_is_registered_and_its_classes_pickle(tmp_path: Path) -> None:
    path = write(tmp_path / "gla.py", 0.9)
    module = load_file(path)
    assert sys.modules[module.__name__] is module
    assert module.__file__ == str(path)
    state = module.State(1.5)
    assert pickle.loads(pickle.dumps(state)) == state


def test_no_bytecode_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    load_file(write(tmp_path / "gla.py", 0.9))
    assert [path.name for path in tmp_path.iterdir()] == ["gla.py"]


def test_a_file_that_fails_leaves_no_module(tmp_path: Path) -> None:
    path = tmp_path / "failing_module.py"
    path.write_text("import no_such_module_anywhere\n")
    with pytest.raises(ModuleNotFoundError, match="no_such_module_anywhere"):
        load_file(path)
    assert not [name for name in sys.modules if "failing_module" in name]


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere.py"):
        load_file(tmp_path / "nowhere.py")
