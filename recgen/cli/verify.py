"""`recgen verify`: the generated operator against its one-step recurrence, on random inputs."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from recgen.cli.common import CHECK_FAILED, SpecArguments, progress_bar, read_all

if TYPE_CHECKING:
    from recgen.spec import Spec

NAME = "verify"
HELP = "Compare every form with the recurrence on random shapes, gates and states; print the smallest failing input."
EXAMPLE = "recgen verify gla --form chunk --examples 200"


class Form(StrEnum):
    parallel = "parallel"
    chunk = "chunk"
    recurrent = "recurrent"
    step = "step"
    operator = "operator"


def run(
    specs: SpecArguments,
    form: Annotated[list[Form] | None, typer.Option(help="Verify this form; may be repeated [default: all].")] = None,
    examples: Annotated[int, typer.Option(min=1, help="Random inputs, each for every form.")] = 50,
    seed: Annotated[int | None, typer.Option(help="Draw the same inputs as a run with this seed.")] = None,
) -> None:
    from recgen.verify import verify_spec

    forms = [chosen.value for chosen in form] if form else None
    read = read_all(specs)
    for spec in read:
        _need(spec, forms or [])
    failed = False
    for spec in read:
        with progress_bar(spec.name) as advance:
            report = verify_spec(spec, forms=forms, examples=examples, seed=seed, progress=advance)
        typer.echo(report.render())
        failed |= not report.ok
    if failed:
        raise typer.Exit(CHECK_FAILED)


def _need(spec: Spec, forms: list[str]) -> None:
    """Refuses a form that this operator does not have, as one that is not causal has no recurrence over time."""
    from recgen.loader import load

    module = load(spec) if forms else None
    for form in forms:
        if not hasattr(module, form):
            raise typer.BadParameter(f"{spec.name} has no form {form!r}", param_hint="--form")
