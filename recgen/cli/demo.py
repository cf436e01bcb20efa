"""`recgen demo`: everything once, on real text, in one report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recgen.cli.common import wrote

NAME = "demo"
HELP = "Generate and verify operators, train a small language model with one, and write an HTML report."
EXAMPLE = "recgen demo -o demo.html"


def run(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The report.")] = Path("demo.html"),
) -> None:
    from recgen import demo

    wrote(demo.run(out))
