"""`recgen fmt`: specs and decay families in one normal form."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recgen.cli.common import CHECK_FAILED
from recgen.errors import Problem, SpecError

NAME = "fmt"
HELP = "Put keys in order and normalise quotes and spaces, in place; comments stay, and the meaning does."
EXAMPLE = "recgen fmt my_operator.yaml --check"


def run(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="YAML files of specs and of decay families.")],
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail when a file would change.")] = False,
) -> None:
    from recgen.spec.layout import normalise

    problems: list[Problem] = []
    changed = 0
    for path in files:
        try:
            if not normalise(path, check=check):
                changed += 1
                typer.echo(f"{path}: {'not in its normal form' if check else 'normalised'}")
        except SpecError as error:  # the others are looked at all the same
            problems += error.problems
    if problems:
        raise SpecError(problems)
    if not changed:
        typer.echo(f"{len(files)} in normal form")
    elif check:
        raise typer.Exit(CHECK_FAILED)
