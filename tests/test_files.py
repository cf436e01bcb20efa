"""A written file is whole, and Python never takes old bytecode for it."""

from __future__ import annotations

import importlib
import json
import math
import os
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from recgen.files import json_text, write_atomically, write_json


def test_the_text_arrives_to_the_byte(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "folder" / "gla.py"
    write_atomically(path, "# σ·q·S\n")
    assert path.read_bytes() == "# σ·q·S\n".encode()


def test_nothing_else_is_left_in_the_folder(tmp_path: Path) -> None:
    for text in ("a = 1\n", "a = 2\n"):
        write_atomically(tmp_path / "gla.py", text)
    assert [path.name for path in tmp_path.iterdir()] == ["gla.py"]


def test_a_failed_write_leaves_the_old_file_and_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "gla.py"
    write_atomically(path, "a = 1\n")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, "a = 2\n")
    assert path.read_text() == "a = 1\n"
    assert [path.name for path in tmp_path.iterdir()] == ["gla.py"]


def test_an_unchanged_file_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "gla.py"
    write_atomically(path, "a = 1\n")
    before = path.stat()
    write_atomically(path, "a = 1\n")
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


def test_the_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    write_atomically(tmp_path / "gla.py", "a = 1\n")
    (tmp_path / "other.py").touch()
    assert stat.S_IMODE((tmp_path / "gla.py").stat().st_mode) == stat.S_IMODE((tmp_path / "other.py").stat().st_mode)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "real.py", tmp_path / "link.py"
    target.write_text("a = 1\n")
    link.symlink_to(target)
    write_atomically(link, "a = 2\n")
    assert link.is_symlink()
    assert target.read_text() == "a = 2\n"


def test_a_reader_sees_one_text_or_the_other_never_a_part(tmp_path: Path) -> None:
    path = tmp_path / "gla.py"
    texts = [f"{letter}\n" * 20_000 for letter in "ab"]
    write_atomically(path, texts[0])

    def write(text: str) -> None:
        for _ in range(30):
            write_atomically(path, text)

    def read() -> set[str]:
        return {path.read_text() for _ in range(200)}

    with ThreadPoolExecutor() as pool:
        writers = [pool.submit(write, text) for text in texts]
        seen = pool.submit(read).result()
        for writer in writers:
            writer.result()
    assert seen <= set(texts)


@pytest.mark.parametrize("removed_between", [False, True])
def test_reloading_a_rewritten_module_gives_the_new_one(
    removed_between: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same size, same second: what Python's own check of its bytecode does not notice."""
    path = tmp_path / "rewritten_module.py"
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    write_atomically(path, "DECAY = 0.0\n")
    module = importlib.import_module("rewritten_module")
    for tenths in range(1, 8):
        if removed_between:
            path.unlink()
        write_atomically(path, f"DECAY = 0.{tenths}\n")
        assert importlib.reload(module).DECAY == tenths / 10
    del sys.modules["rewritten_module"]


def test_what_is_no_file_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(pipe.read_text)
        write_atomically(pipe, "a = 1\n")
        assert read.result(timeout=10) == "a = 1\n"
    assert pipe.is_fifo()
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path, "a = 1\n")


def test_numbers_that_are_not_finite_are_null_in_json(tmp_path: Path) -> None:
    path = tmp_path / "new" / "data.json"
    write_json(path, {"error": math.nan, "ratios": (1.5, -math.inf), "σ": ["x", 1, None, True]})
    assert json.loads(path.read_text()) == {"error": None, "ratios": [1.5, None], "σ": ["x", 1, None, True]}
    assert json_text({"σ": math.inf}).endswith("}\n")
