"""`recgen check`: is this spec one that recgen understands?"""

from __future__ import annotations

import typer

from recgen.cli.common import SpecArguments, read_all

NAME = "check"
HELP = "Read specs and say what is wrong with them; generate nothing."
EXAMPLE = "recgen check my_operator.yaml"


def run(specs: SpecArguments) -> None:
    for spec in read_all(specs):
        decay = spec.decay
        varies = f"{decay.type} decay per {decay.per}" if decay.type != "none" else "no decay"
        tensors = ", ".join(f"{tensor.name} [{' '.join(tensor.axes)}]" for tensor in spec.tensors)
        typer.echo(f"{spec.name}: {varies}; {tensors}")
