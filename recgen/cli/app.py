"""The command line's frame: the group of commands, the one place where errors become messages and exit codes."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

import recgen
from recgen.cli import bench, check, compile, demo, explain, families, generate, gpu, verify
from recgen.cli.common import BAD_INPUT, CHECK_FAILED, complain
from recgen.errors import ProofError, SpecError


class Commands(TyperGroup):
    """Commands whose foreseen errors are shown as text, without a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except SpecError as error:
            complain(str(error))
        except ProofError as error:
            complain(f"the proof failed, so nothing is emitted: {error}")
            raise typer.Exit(CHECK_FAILED) from None
        except BrokenPipeError:
            raise
        except OSError as error:
            complain(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error))
        raise typer.Exit(BAD_INPUT)


app = typer.Typer(
    name="recgen",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for command in (generate, check, explain, verify, compile, bench, gpu, demo, families):
    app.command(command.NAME, help=command.HELP, epilog=f"Example: [bold]{command.EXAMPLE}[/bold]")(command.run)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"recgen {recgen.__version__}")
        raise typer.Exit


@app.callback()
def _recgen(
    version: bool = typer.Option(False, "--version", help="Print the version.", callback=_version, is_eager=True),
) -> None:
    """Compiles a recurrence, written as a short YAML spec, into one Python module of Triton kernels and torch code.

    SPEC is the path of a YAML file, or the name of an operator of the catalogue.
    """


def main() -> None:
    """The `recgen` program."""
    app()
