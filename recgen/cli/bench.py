"""`recgen bench`: time and memory of the generated operators, against softmax attention and a token loop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recgen.cli.common import CHECK_FAILED

NAME = "bench"
HELP = "Measure generated operators against softmax attention and a token loop; fail when one is slower than promised."
EXAMPLE = "recgen bench simple_gla gla --quick"


def run(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Catalogue operators; simple_gla and gla by default.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the results as JSON.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Short lengths and few repetitions.")] = False,
) -> None:
    from recgen import bench

    if not bench.run(names or [], out, quick).ok:
        raise typer.Exit(CHECK_FAILED)
