"""Pages that say what to do: their files are written, their commands and programs run, in order, in one empty folder.

yaml       a file, whose name stands in its first line as `# NAME`
python     typed into one interpreter per page; with `# NAME.py` in the first line, a file like those
text       what the Python block before it prints; `...` is anything
sh         one command a line, each of which succeeds
console    commands after `$ `, each with its output, written as doctest has it; `# exits with N` where it fails
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from doctest import ELLIPSIS, OutputChecker
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (\S+\.(?:yaml|py))\n.*", re.DOTALL)
EXIT = re.compile(r"# exits with (\d)$")
SECONDS = 170

# What the interpreter of a page does: programs come in line by line as JSON, what they print goes back.
INTERPRETER = """
import contextlib, io, json, sys, traceback
space = {"__name__": "__main__"}
for line in sys.stdin:
    printed, failed = io.StringIO(), ""
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(json.loads(line), "<page>", "exec"), space)
    except BaseException:
        failed = traceback.format_exc()
    print(json.dumps([printed.getvalue(), failed]), flush=True)
"""


@dataclass(frozen=True)
class Block:
    language: str
    text: str


def blocks(page: str) -> list[Block]:
    """The code of a page, but for formulas."""
    return [Block(*match.groups()) for match in BLOCK.finditer(page) if match[1] != "math"]


def environment(folder: Path) -> dict[str, str]:
    """That of someone at a shell: `recgen` is this checkout's, `python` the one that runs this, the cache empty."""
    programs = folder / "bin"
    programs.mkdir()
    for name, arguments in (("recgen", "-m recgen "), ("python", "")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {arguments}"$@"\n', encoding="utf-8")
        program.chmod(0o755)
    plain = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    return plain | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "RECGEN_CACHE": str(folder / "cache"),
        "COLUMNS": "120",
        "NO_COLOR": "1",
        "OMP_NUM_THREADS": "1",
    }


class Reader:
    """Someone who does what pages say, in a folder: a context manager, as it has an interpreter open."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.environment = environment
        self._interpreter: subprocess.Popen[str] | None = None

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._interpreter is not None:
            self._interpreter.kill()
            self._interpreter.communicate()

    def follow(self, page: str) -> None:
        """Does what every block says, in order. Raises AssertionError where one does something else."""
        found = blocks(page)
        for n, block in enumerate(found):
            file = FILE.fullmatch(block.text)
            match block.language:
                case "yaml" | "python" if file:
                    (self.folder / file[1]).write_text(block.text, encoding="utf-8")
                case "python":
                    printed = self.type(block.text)
                    if n + 1 < len(found) and found[n + 1].language == "text":
                        same(found[n + 1].text, printed, block.text)
                case "text":
                    assert n and found[n - 1].language == "python", f"what prints this?\n{block.text}"
                case "sh":
                    for command in block.text.splitlines():
                        self.shell(command)
                case "console":
                    for command, wanted in sessions(block.text):
                        same(wanted, self.shell(command), f"$ {command}")
                case other:
                    raise AssertionError(f"a block in {other}, which nothing here runs:\n{block.text}")

    def type(self, program: str) -> str:
        """What a program prints that is typed into the page's interpreter."""
        if self._interpreter is None:
            self._interpreter = subprocess.Popen(
                [sys.executable, "-u", "-c", INTERPRETER],
                cwd=self.folder,
                env=self.environment,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        assert self._interpreter.stdin and self._interpreter.stdout
        self._interpreter.stdin.write(json.dumps(program) + "\n")
        self._interpreter.stdin.flush()
        answer = self._interpreter.stdout.readline()
        assert answer, f"the interpreter ended in\n{program}"
        printed, failed = json.loads(answer)
        assert not failed, f"{program}\n{failed}"
        return str(printed)

    def shell(self, command: str) -> str:
        """What a command prints; on stdout, and on stderr where it fails as it should."""
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        fails = EXIT.search(command)
        assert done.returncode == int(fails[1] if fails else 0), f"$ {command}\n{done.stdout}{done.stderr}"
        return done.stdout + (done.stderr if fails else "")


def sessions(text: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output under it, written as doctest has it: `...` is anything."""
    found = re.split(r"^\$ (.*)\n", text, flags=re.MULTILINE)[1:]
    return [
        (command, re.sub("(?m)^<BLANKLINE>$", "", wanted))
        for command, wanted in zip(found[::2], found[1::2], strict=True)
    ]


def same(wanted: str, given: str, what: str) -> None:
    """Refuses what is printed where the page shows something else."""
    shown = f"{what}\n--- on the page\n{wanted}--- printed\n{given}"
    assert OutputChecker().check_output(wanted, given, ELLIPSIS), shown
