"""`recgen explain`: what the compiler makes of a spec, stage by stage, as mathematics; and how two specs differ."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from recgen.cli.common import SpecArgument, keep_foreign, read_all, wrote
from recgen.cli.pages import show

NAME = "explain"
HELP = "Print what a spec means: its mask, its update, its chunk split, its adjoint, its costs, its plan."
EXAMPLE = "recgen explain gla --html gla.html"


class Stage(StrEnum):
    read = "read"
    derive = "derive"
    plan = "plan"


def run(
    spec: SpecArgument,
    other: Annotated[
        str | None, typer.Argument(metavar="[OTHER]", help="Another spec: then what differs between the two.")
    ] = None,
    stage: Annotated[Stage | None, typer.Option(help="How far to compile before printing; derive by default.")] = None,
    latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX, for XeLaTeX or LuaLaTeX with amsmath.")] = False,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", dir_okay=False, help="Write one page with formulas and pictures."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="With --html: overwrite a file that is no page.")] = False,
    trace: Annotated[
        str | None,
        typer.Option(
            "--trace",
            metavar="KERNEL",
            help="Print a kernel or function of the module, line by line, beside the equations that it implements.",
        ),
    ] = None,
) -> None:
    _one_way(other=other, stage=stage, latex=latex, html=html, trace=trace)
    if html is not None and not force:
        keep_foreign([html], ("<html", "<!doctype html"), "is no HTML page", "--html")
    if force and html is None:
        raise typer.BadParameter("this belongs to --html FILE", param_hint="--force")
    from recgen import compiler

    read = read_all([spec] if other is None else [spec, other])
    if other is not None:
        show(compiler.compare(read[0], read[1], latex=latex))
    elif trace is not None:
        from recgen.explain.lines import UnknownFunction

        try:
            show(compiler.trace(read[0], trace))
        except UnknownFunction as error:
            reason = f"in the module of {read[0].name}, {error}"
            raise typer.BadParameter(reason, param_hint="--trace") from None
    elif html is not None:
        wrote(compiler.explain_page(read[0], html))
    else:
        show(compiler.explain(read[0], (stage or Stage.derive).value, latex=latex))


def _one_way(other: str | None, stage: Stage | None, latex: bool, html: Path | None, trace: str | None) -> None:
    """Refuses options that ask for different things at once."""
    asked = {"OTHER": other, "--stage": stage, "--latex": latex or None, "--html": html, "--trace": trace}
    given = [name for name, value in asked.items() if value is not None]
    together = [{"OTHER", "--latex"}, {"--stage", "--latex"}]
    if len(given) > 1 and set(given) not in together:
        reason = f"{' and '.join(given)} ask for different things: give one of them"
        raise typer.BadParameter(reason, param_hint=given[-1])
    if stage is Stage.plan and latex:
        raise typer.BadParameter("a plan is a list of kernels, which has no LaTeX: leave it out", param_hint="--latex")
