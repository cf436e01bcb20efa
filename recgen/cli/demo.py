"""`recgen demo`: everything once, on real text, in one report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recgen.cli.common import BAD_INPUT, complain

NAME = "demo"
HELP = "Generate and verify operators, train a small language model with one, and write an HTML report."
EXAMPLE = "recgen demo -o demo.html"


def run(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The report.")] = Path("demo.html"),
) -> None:
    try:
        from recgen import demo
    except ModuleNotFoundError as error:
        complain(f"the demo draws its report with {error.name}, which is not installed: pip install 'recgen[demo]'")
        raise typer.Exit(BAD_INPUT) from None

    typer.echo(f"The report is in {demo.run(out)}")
