"""`recgen verify`: the generated operator against its one-step recurrence, on random inputs."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recgen.cli.common import CHECK_FAILED, SpecArguments, progress_bar, read_all, write_report, wrote

if TYPE_CHECKING:
    from recgen.spec import Spec
    from recgen.verify import Report
    from recgen.verify.against import Comparison

NAME = "verify"
HELP = "Compare every form with the recurrence on random shapes, gates and states; print the smallest failing input."
EXAMPLE = "recgen verify gla --form chunk --examples 200"

ALONE = "--against"
EXAMPLES = 50


class Form(StrEnum):
    parallel = "parallel"
    chunk = "chunk"
    recurrent = "recurrent"
    step = "step"
    operator = "operator"


class Layout(StrEnum):
    bthd = "bthd"
    bhtd = "bhtd"


def run(
    specs: SpecArguments,
    form: Annotated[
        list[Form] | None, typer.Option(help="Verify this form; may be repeated.", show_default="all")
    ] = None,
    examples: Annotated[
        int | None,
        typer.Option(min=1, help="Random inputs, each for every form.", show_default="50; with --against 1"),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Draw the same inputs as a run with this seed.")] = None,
    budget: Annotated[
        float | None,
        typer.Option(min=0.0, metavar="SECONDS", help="Start nothing after this; say what was not reached."),
    ] = None,
    json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", dir_okay=False, help="Write everything as JSON.")
    ] = None,
    repro: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", dir_okay=False, help="Write a script that shows the failure there, if there is one."
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(metavar="MODULE:FUNCTION", help="Compare with an implementation of yours instead."),
    ] = None,
    map: Annotated[
        list[str] | None,
        typer.Option(metavar="THEIRS=OURS", help="With --against: which of your arguments is which of the operator's."),
    ] = None,
    layout: Annotated[
        Layout | None,
        typer.Option(help="With --against: how your implementation orders heads and time [default: bthd]."),
    ] = None,
) -> None:
    """Exit code 1: something is out of tolerance; 2: the usage or the spec is wrong."""
    if against is not None:
        _refuse({"--form": form, "--budget": budget, "--repro": repro}, f"this does not go with {ALONE}")
        found = _compared(specs, against, map or [], layout or Layout.bthd, seed or 0, examples or 1)
        _tell([found], json, found.as_dict())
        return
    _refuse({"--map": map, "--layout": layout}, f"this belongs to {ALONE} MODULE:FUNCTION")
    reports = _verified(specs, [chosen.value for chosen in form or []], examples or EXAMPLES, seed, budget)
    if repro is not None:
        _write_scripts(repro, reports)
    _tell(reports, json, {"ok": all(r.ok for r in reports), "reports": [r.as_dict() for r in reports]})


def _refuse(options: dict[str, Any], reason: str) -> None:
    for name, value in options.items():
        if value is not None and value != []:
            raise typer.BadParameter(reason, param_hint=name)


def _verified(
    specs: list[str], forms: list[str], examples: int, seed: int | None, budget: float | None
) -> list[Report]:
    """The specs verified one after the other; each report is printed when it is there."""
    from recgen.verify import verify_spec

    read = read_all(specs)
    for spec in read:
        _need(spec, forms)
    reports = []
    for spec in read:
        with progress_bar(spec.name) as advance:
            report = verify_spec(
                spec, forms=forms or None, examples=examples, seed=seed, budget=budget, progress=advance
            )
        typer.echo(report.render())
        reports.append(report)
    return reports


def _tell(found: Sequence[Report | Comparison], json: Path | None, data: dict[str, Any]) -> None:
    """Writes what was found, if asked to; ends with 1 where something is out of tolerance."""
    if json is not None:
        write_report(json, data)
    if not all(one.ok for one in found):
        raise typer.Exit(CHECK_FAILED)


def _need(spec: Spec, forms: list[str]) -> None:
    """Refuses a form that this operator does not have, as one that is not causal has no recurrence over time."""
    from recgen.loader import load

    module = load(spec) if forms else None
    for form in forms:
        if not hasattr(module, form):
            raise typer.BadParameter(f"{spec.name} has no form {form!r}", param_hint="--form")


def _write_scripts(path: Path, reports: list[Report]) -> None:
    """The script of the first failure to `path`, of the others beside it, numbered."""
    from recgen.files import write_atomically

    scripts = [failure.snippet for report in reports for failure in report.failures]
    for number, script in enumerate(scripts, 1):
        file = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        write_atomically(file, script)
        wrote(file)


def _compared(specs: list[str], against: str, pairs: list[str], layout: Layout, seed: int, examples: int) -> Comparison:
    from recgen.loader import load
    from recgen.verify.against import Refused, compare_with

    if len(specs) != 1:
        raise typer.BadParameter(f"one SPEC at a time, not {len(specs)}", param_hint=ALONE)
    [spec] = read_all(specs)
    try:
        comparison = compare_with(load(spec), against, pairs, layout.value, seed, examples)
    except Refused as why:
        raise typer.BadParameter(str(why), param_hint=why.option) from None
    typer.echo(comparison.render())
    return comparison
