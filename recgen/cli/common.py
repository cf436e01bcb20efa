"""What the commands share: reading specs, and saying what went wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

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
