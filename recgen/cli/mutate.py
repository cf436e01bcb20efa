"""`recgen mutate`: small faults put into the emitted code, and which of them the checks catch."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from recgen.cli.common import CHECK_FAILED, SpecArgument, complain, progress_bar, read_all, write_report

NAME = "mutate"
HELP = "Put small faults into the emitted code, one at a time, and show which the checks catch and which survive."
EXAMPLE = "recgen mutate gla --limit 40 --at-least 50"


def run(
    spec: SpecArgument,
    limit: Annotated[int, typer.Option(min=1, help="At most so many faults, drawn at random.")] = 80,
    seed: Annotated[int, typer.Option(help="Draws other faults.")] = 0,
    budget: Annotated[
        float, typer.Option(min=0.0, metavar="SECONDS", help="Start no further fault after this.")
    ] = 90.0,
    at_least: Annotated[
        float, typer.Option(min=0.0, max=100.0, metavar="PERCENT", help="Fail when fewer faults are caught.")
    ] = 0.0,
    json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", dir_okay=False, help="Write everything as JSON.")
    ] = None,
) -> None:
    """Every fault runs through a few telling cases of every form and backend, the kernels in Triton's interpreter.
    Only lines that these cases run are made faulty. One that survives may change no result at all, so survivors alone
    are no failure.

    Exit code 1: the code fails without any fault, or fewer faults than --at-least are caught.
    """
    from recgen.loader import load
    from recgen.verify.mutation import run as survey_of

    if not hasattr(os, "fork"):
        raise typer.BadParameter("this needs a system on which processes fork, such as Linux")
    [checked] = read_all([spec])
    module = load(checked)
    try:
        with progress_bar(checked.name) as advance:
            survey = survey_of(module, limit=limit, seed=seed, budget=budget, progress=advance)
    except RuntimeError as error:
        complain(f"no faults could be tried: {error}")
        raise typer.Exit(CHECK_FAILED) from None
    typer.echo(survey.render())
    ok = not survey.wrong and 100 * survey.share >= at_least
    if json is not None:
        write_report(json, {"ok": ok, **survey.as_dict()})
    if not ok:
        raise typer.Exit(CHECK_FAILED)
