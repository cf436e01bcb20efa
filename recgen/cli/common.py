"""What the commands share: reading specs, showing how far the work is, and saying what went wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from recgen.errors import Problem, SpecError

if TYPE_CHECKING:
    from recgen.spec import Spec

CHECK_FAILED = 1
BAD_INPUT = 2

SpecArgument = Annotated[
    str, typer.Argument(metavar="SPEC", help="The path of a YAML file, or the name of a catalogue operator.")
]
SpecArguments = Annotated[
    list[str], typer.Argument(metavar="SPEC", help="Paths of YAML files, or names of catalogue operators.")
]


class Advance(Protocol):
    def __call__(self, done: int, total: int, text: str) -> None: ...


def complain(message: str) -> None:
    """Prints an error to stderr, as it is."""
    typer.echo(message, err=True)


def read_all(specs: list[str]) -> list[Spec]:
    """Reads every spec before any is used, so that the errors of all of them come at once. Raises SpecError."""
    from recgen.loader import resolve

    read: list[Spec] = []
    problems: list[Problem] = []
    for spec in specs:
        try:
            read.append(resolve(spec))
        except SpecError as error:
            problems += error.problems
    if problems:
        raise SpecError(problems)
    return read


def write_report(path: Path, data: Any) -> None:
    """Writes plain data as JSON, and says so."""
    from recgen.files import write_json

    write_json(path, data)
    wrote(path)


def keep_foreign(paths: Iterable[Path], marks: Iterable[str], wrong: str, option: str) -> None:
    """Refuses to overwrite a file in which none of the marks stands, and says what is wrong with it. An empty one is
    nobody's loss.
    """
    wanted = [mark.lower() for mark in marks]
    for path in paths:
        text = path.read_text(encoding="utf-8", errors="replace").lower() if path.is_file() else ""
        if text and not any(mark in text for mark in wanted):
            raise typer.BadParameter(f"{path} is there already and {wrong}; --force overwrites it", param_hint=option)


def wrote(*paths: Path) -> None:
    """Says which files have been written."""
    typer.echo(f"wrote {' and '.join(map(str, paths))}")


@contextmanager
def progress_bar(name: str) -> Iterator[Advance]:
    """A bar on stderr while the block runs, where a person is looking."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.fields[name]}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    words = TextColumn("{task.description}", markup=False)
    with Progress(*columns, words, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("compiling", total=None, name=name)

        def advance(done: int, total: int, text: str) -> None:
            bar.update(task, completed=done, total=total, description=text)

        yield advance
