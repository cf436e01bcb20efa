"""`recgen explain`: what the compiler makes of a spec, stage by stage, as mathematics."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from recgen.cli.common import SpecArgument, read_all

NAME = "explain"
HELP = "Print what a spec means: its mask, its update, its chunk split, its adjoint, its plan."
EXAMPLE = "recgen explain gla --stage derive --latex"


class Stage(StrEnum):
    read = "read"
    derive = "derive"
    plan = "plan"


def run(
    spec: SpecArgument,
    stage: Annotated[Stage, typer.Option(help="How far to compile before printing.")] = Stage.derive,
    latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX.")] = False,
) -> None:
    from recgen import compiler

    [checked] = read_all([spec])
    typer.echo(compiler.explain(checked, stage.value, latex=latex))
