"""`recgen compile`: the kernels of an operator compiled for GPUs that are not here, and what they would cost there."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recgen.cli.common import CHECK_FAILED, SpecArgument, progress_bar, read_all, write_report
from recgen.targets import TARGETS

if TYPE_CHECKING:
    from types import ModuleType

NAME = "compile"
HELP = "Compile every kernel for GPUs that are not here; say what each takes, and what it would cost by a model."
EXAMPLE = "recgen compile gla --target sm_90,gfx942 --width 64,128"

CHANNELS = 4096  # most channels of a vector state that are compiled and counted; its kernels take any number


class Dtype(StrEnum):
    bfloat16 = "bfloat16"
    float16 = "float16"
    float32 = "float32"


def run(
    spec: SpecArgument,
    target: Annotated[str, typer.Option(metavar="NAME,…", help=f"The GPUs: {', '.join(TARGETS)}.")] = ",".join(TARGETS),
    width: Annotated[str, typer.Option(metavar="N,…", help="The widths of a head.")] = "64",
    dtype: Annotated[Dtype, typer.Option(help="The dtype of the inputs.")] = Dtype.bfloat16,
    schedule: Annotated[
        str | None,
        typer.Option(metavar="NAME,…", help="Only these schedules; else all, and the recurrent form."),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="DIR", file_okay=False, help="Write PTX and SASS, or AMDGCN, of every kernel there."),
    ] = None,
    json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", dir_okay=False, help="Write everything as JSON.")
    ] = None,
) -> None:
    """Exit code 1: a kernel does not compile, spills, takes too much shared memory, or has a matrix product off the
    tensor cores."""
    from recgen.loader import load

    targets = _targets(target)
    [checked] = read_all([spec])
    module = load(checked)
    widths = _widths(width, module, checked.name)
    schedules = _schedules(schedule, module, checked.name)
    _need_triton()

    from recgen.cost.gather import Request
    from recgen.cost.report import inspect
    from recgen.cost.table import render

    request = Request(checked.name, str(module.__file__), targets, widths, dtype.value, schedules, save)
    with progress_bar(checked.name) as advance:
        report = inspect(request, advance)
    typer.echo(render(report))
    if json is not None:
        write_report(json, report.as_dict())
    if not report.ok:
        raise typer.Exit(CHECK_FAILED)


def _targets(text: str) -> tuple[str, ...]:
    from recgen.spec.source import listing, suggestion

    for name in (names := _parts(text)):
        if name not in TARGETS:
            fix = suggestion(name, TARGETS, f"the targets are {listing(TARGETS, 'and')}")
            raise typer.BadParameter(f"there is no target {name!r}; {fix}", param_hint="--target")
    return names


def _widths(text: str, module: ModuleType, operator: str) -> tuple[int, ...]:
    most = getattr(module, "MAX_WIDTH", CHANNELS)
    for part in (parts := _parts(text)):
        if not part.isdecimal() or not 1 <= int(part) <= most:
            reason = f"{part!r} is not a width; for {operator} it is a whole number from 1 to {most}"
            raise typer.BadParameter(reason, param_hint="--width")
    return tuple(dict.fromkeys(map(int, parts)))


def _schedules(text: str | None, module: ModuleType, operator: str) -> tuple[str, ...]:
    from recgen.spec.source import listing, suggestion

    for name in (names := _parts(text) if text is not None else ()):
        if name not in module.SCHEDULES:
            fix = suggestion(name, module.SCHEDULES, f"it has {listing(module.SCHEDULES, 'and')}")
            reason = f"{operator} has no schedule {name!r}; {fix}"
            raise typer.BadParameter(reason, param_hint="--schedule")
    return names


def _parts(text: str) -> tuple[str, ...]:
    """`a,b` → a and b, each once."""
    return tuple(dict.fromkeys(part.strip() for part in text.split(",")))


def _need_triton() -> None:
    from importlib.util import find_spec

    if find_spec("triton") is None:
        raise typer.BadParameter("this needs Triton, which is not installed: pip install triton")
