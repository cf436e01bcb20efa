"""No spec runs code, writes outside the output folder, reads outside its own, or takes long.

A spec that is refused takes each command at most 2 seconds of processor time and 500 MB, and one that is only hard not
much more. What is measured is the command without Python's start and recgen's imports, which are the same for all.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.hostile import ALIKE, REFUSED, SLOW, TITLES

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is limited and read as Linux has it")
Result = dict[str, Any]


def run_limited(jobs: list[list[list[str]]], folder: Path) -> list[Result]:
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root), "NO_COLOR": "1", "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.cli.limited"],
        input=json.dumps(jobs),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=170,
    )
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    """How check, explain and generate ended for every refused spec; none of them leaves a file behind."""
    folder, jobs = tmp_path_factory.mktemp("hostile"), []
    for number, (content, _) in enumerate(REFUSED.values()):
        home = folder / str(number)
        home.mkdir()
        (home / "spec.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
        os.mkfifo(home / "pipe.yaml")
        path = str(home / "spec.yaml")
        jobs.append([["check", path], ["explain", path], ["generate", path, "-o", "out"]])
    before = files(folder)
    results = dict(zip(REFUSED, run_limited(jobs, folder), strict=True))
    assert files(folder) == before
    return results


@pytest.mark.parametrize("what", REFUSED)
def test_it_is_refused_at_its_place_soon(what: str, refused: dict[str, Result]) -> None:
    result = refused[what]
    assert result["codes"] == [2, 2, 2] and result["ended"] == 0, result
    assert result["text"].count(f"spec.yaml:{REFUSED[what][1]}") >= 3, result["text"]
    assert "Traceback" not in result["text"] and len(result["text"]) < 50_000
    assert result["seconds"] < 2 and result["megabytes"] < 500


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    paths = ["/dev/zero", "/dev/stdin", "pipe.yaml", "/proc/self/mem", ".", "x" * 5000, "x" * 5000 + ".yaml", "-", ""]
    for path, result in zip(paths, run_limited([[["check", "--", path]] for path in paths], tmp_path), strict=True):
        assert result["codes"] == [2] and result["ended"] == 0, (path, result)
        assert len(result["text"]) < 600 and result["seconds"] < 2, path


def test_two_specs_with_many_inputs_that_are_alike_are_compared_soon(tmp_path: Path) -> None:
    """10! orders of the inputs are neither listed nor tried."""
    for name, text in zip("ab", ALIKE, strict=True):
        (tmp_path / f"{name}.yaml").write_text(text)
    (result,) = run_limited([[["explain", "a.yaml", "b.yaml"]]], tmp_path)
    assert result["codes"] == [0], result["text"]
    assert result["seconds"] < 8 and result["megabytes"] < 500, result


def test_what_is_right_is_compiled_within_bounds_and_inside_the_folder(tmp_path: Path) -> None:
    """Titles stay texts: the modules are those of a plain title, statement for statement."""
    titles = dict(enumerate(map(json.dumps, TITLES)))
    specs = {f"title{k}": f"name: title{k}\ntitle: {text}\ncite: {text}\n" for k, text in titles.items()}
    specs |= {f"slow{k}": text.replace("name: mine", f"name: slow{k}") for k, text in enumerate(SLOW.values())}
    specs["plain"] = "name: plain\ntitle: a\ncite: b\n"
    for name, text in specs.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    before = files(tmp_path)
    results = run_limited([[["generate", f"{name}.yaml", "-o", "out"]] for name in specs], tmp_path)
    for name, result in zip(specs, results, strict=True):
        assert result["codes"] == [0], (name, result["text"])
        assert result["seconds"] < 8 and result["megabytes"] < 500, (name, result)
    assert files(tmp_path) - before == {f"out/{name}.py" for name in specs}
    modules = {name: ast.parse((tmp_path / "out" / f"{name}.py").read_text()) for name in specs}
    shape = [type(statement) for statement in modules["plain"].body]
    for number, text in enumerate(TITLES):
        module = modules[f"title{number}"]
        assert [type(statement) for statement in module.body] == shape
        assert text in str(ast.get_docstring(module, clean=False))
