"""`recgen gpu`: the kernels checked and timed on a GPU, in one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from recgen.cli.common import BAD_INPUT, CHECK_FAILED, complain, wrote

NAME = "gpu"
HELP = "Check every kernel on this machine's GPU, time it against others, and write the results as JSON and Markdown."
EXAMPLE = "recgen gpu --dry-run --out gpu"


def run(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Catalogue operators.", show_default="all")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Of gpu.json and gpu.md.")] = Path("gpu"),
    budget: Annotated[float, typer.Option(min=1, metavar="SECONDS", help="What there is no time for is named.")] = 480,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="The same steps on the CPU, tiny; times nothing.")] = False,
    modules: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Generated modules to use.", show_default="compile them")
    ] = None,
) -> None:
    from recgen.bench import gpu
    from recgen.bench.gpu.tables import summary

    console = Console(stderr=True)
    try:
        with console.status("starting") as status:
            results = gpu.run(
                names or [], out, budget=budget, dry=dry_run, modules=modules, progress=lambda text: status.update(text)
            )
    except gpu.Refused as error:
        complain(str(error))
        raise typer.Exit(BAD_INPUT) from None
    for line in summary(results):
        typer.echo(line)
    wrote(out / "gpu.json", out / "gpu.md")
    if not results.ok:
        raise typer.Exit(CHECK_FAILED)
