"""The README does what it says: its files are written, its commands and programs run, in order, in one empty folder."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from doctest import ELLIPSIS, OutputChecker
from pathlib import Path

import pytest

from recgen import read
from recgen.resources import catalogue

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    language: str
    text: str


BLOCKS = [Block(*match.groups()) for match in BLOCK.finditer(README)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("readme")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A PATH whose `recgen` is this checkout's, and a cache of its own."""
    programs = tmp_path_factory.mktemp("bin")
    (programs / "recgen").write_text(
        f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m recgen "$@"\n', encoding="utf-8"
    )
    (programs / "recgen").chmod(0o755)
    return os.environ | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "120",
        "NO_COLOR": "1",
        "OMP_NUM_THREADS": "1",
    }


def test_every_block_does_what_it_says(folder: Path, environment: dict[str, str]) -> None:
    for block in BLOCKS:
        match block.language:
            case "yaml":
                name, text = re.fullmatch(r"# (\S+\.yaml)\n(.*)", block.text, re.DOTALL).groups()
                (folder / name).write_text(text, encoding="utf-8")
            case "python":
                run([sys.executable, "-c", block.text], folder, environment)
            case "sh":
                for command in block.text.splitlines():
                    shell(command, folder, environment)
            case "console":
                for command, wanted in sessions(block.text):
                    given = shell(command, folder, environment)
                    assert OutputChecker().check_output(wanted, given, ELLIPSIS), f"$ {command}\n{given}"
            case other:
                pytest.fail(f"a block in {other}, which nothing here runs")


def sessions(text: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output under it, written as doctest has it: `...` is anything."""
    found = re.split(r"^\$ (.*)\n", text, flags=re.MULTILINE)[1:]
    return [
        (command, re.sub("(?m)^<BLANKLINE>$", "", wanted))
        for command, wanted in zip(found[::2], found[1::2], strict=True)
    ]


def shell(command: str, folder: Path, environment: dict[str, str]) -> str:
    return run(["sh", "-c", command], folder, environment)


def run(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=170)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("target", re.findall(r"^    make (\w+) ", README, re.MULTILINE))
def test_make_knows_the_two_commands_and_sets_up_for_them(target: str, tmp_path: Path) -> None:
    for name in ("Makefile", "constraints.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    plain = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}  # as typed in a shell
    done = subprocess.run(["make", "-n", target], cwd=tmp_path, env=plain, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    steps = done.stdout
    assert steps.index("venv") < steps.index("install") < steps.index({"demo": "demo.html", "test": "pytest"}[target])


def test_the_two_commands_come_first() -> None:
    assert re.findall(r"^    make (\w+) ", README, re.MULTILINE) == ["demo", "test"]
    assert README.index("    make demo") < README.index("## ")


def test_the_table_is_the_catalogue() -> None:
    rows = dict(re.findall(r"^\| \[`(\w+)`\]\(.*\| (\S+) \|$", README, re.MULTILINE))
    assert rows == {name: read(path).cite or "–" for name, path in catalogue().items()}


def test_a_family_of_ones_own_takes_less_than_thirty_lines() -> None:
    section = README.split("## Your own decay\n")[1].split("\n## ")[0]
    lines = [line for match in BLOCK.finditer(section) for line in match[2].splitlines()]
    assert 0 < len(lines) < 30


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
