"""`recgen families`: the decay parametrisations that a spec can name."""

from __future__ import annotations

import typer

NAME = "families"
HELP = "List the built-in decay families."
EXAMPLE = "recgen families"


def run() -> None:
    from recgen.spec.families import load_families

    for name, family in load_families().items():
        typer.echo(f"{name}: {family}")
