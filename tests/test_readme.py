"""The README does what it says: its files are written, its commands and programs run, in order, in one empty folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from recgen import read
from recgen.resources import catalogue
from tests.reader import BLOCK, Reader, environment

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_block_does_what_it_says(tmp_path_factory: pytest.TempPathFactory) -> None:
    with Reader(tmp_path_factory.mktemp("readme"), environment(tmp_path_factory.mktemp("user"))) as reader:
        reader.follow(README)


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
