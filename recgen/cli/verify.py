"""`recgen verify`: the generated operator against its one-step recurrence, on random inputs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Protocol

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from recgen.cli.common import CHECK_FAILED, SpecArguments, read_all

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


class Advance(Protocol):
    def __call__(self, done: int, total: int, text: str) -> None: ...


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
        with _progress(spec.name) as advance:
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


@contextmanager
def _progress(name: str) -> Iterator[Advance]:
    """A bar on stderr while the block runs, where a person is looking."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.fields[name]}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    words = TextColumn("{task.description}", markup=False)
    with Progress(*columns, words, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("compiling", total=None, name=name)

        def advance(done: int, total: int, text: str) -> None:
            bar.update(task, completed=done, total=total, description=text)

        yield advance
