"""`recgen generate`: specs → modules, or the question whether the modules are up to date."""

from __future__ import annotations

from collections import Counter
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recgen.cli.common import CHECK_FAILED, SpecArguments, complain, read_all
from recgen.errors import Problem, SpecError

if TYPE_CHECKING:
    from recgen.spec import Spec

NAME = "generate"
HELP = "Write one module per spec."
EXAMPLE = "recgen generate gla my_operator.yaml -o generated"

SHOWN = 40  # lines of a difference


def run(
    specs: SpecArguments,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="DIR", file_okay=False, help="The folder for the modules, each NAME.py."),
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; fail when a module is missing or differs.")
    ] = False,
) -> None:
    read = read_all(specs)
    _refuse_shared_names(read)
    if check:
        stale = [spec for spec in read if not _up_to_date(spec, out / f"{spec.name}.py")]
        if stale:
            complain(f"{len(stale)} of {len(read)} modules in {out} are out of date; generate them again")
            raise typer.Exit(CHECK_FAILED)
        typer.echo(f"{len(read)} modules in {out} are up to date")
        return
    problems: list[Problem] = []
    for spec in read:
        from recgen.loader import generate

        try:
            typer.echo(f"{spec.name} → {generate(spec, out / f'{spec.name}.py')}")
        except SpecError as error:  # the others are written all the same
            problems += error.problems
    if problems:
        raise SpecError(problems)


def _up_to_date(spec: Spec, path: Path) -> bool:
    """Whether the file holds what the spec compiles to; says how it does not."""
    from recgen.loader.modules import compile_source

    wanted = compile_source(spec)
    if not path.is_file():
        complain(f"{path}: missing")
        return False
    found = path.read_bytes()
    if found == wanted.encode("utf-8"):
        return True
    lines = found.decode("utf-8", errors="replace").splitlines()
    diff = list(unified_diff(lines, wanted.splitlines(), str(path), f"{spec.name}, generated now", n=2, lineterm=""))
    more = [f"… and {len(diff) - SHOWN} more lines"] if len(diff) > SHOWN else []
    complain("\n".join([*diff[:SHOWN], *more]) if diff else f"{path}: only line ends differ")
    return False


def _refuse_shared_names(specs: list[Spec]) -> None:
    for name, times in Counter(spec.name for spec in specs).items():
        if times > 1:
            paths = ", ".join(spec.path for spec in specs if spec.name == name)
            raise typer.BadParameter(f"{times} specs are called {name!r} and would be one file: {paths}")
