"""The command line's frame: the group of commands, the one place where errors become messages and exit codes."""

from __future__ import annotations

import re
from typing import Any

import typer
from typer.core import TyperGroup

import recgen
from recgen.cli import (
    bench,
    check,
    compile,
    demo,
    doctor,
    explain,
    families,
    fmt,
    generate,
    gpu,
    mutate,
    new,
    schema,
    verify,
)
from recgen.cli.common import BAD_INPUT, CHECK_FAILED, complain
from recgen.errors import ProofError, SpecError, shortened
from recgen.python import ProcessFailed

_NO_CHOICE = re.compile(r"(?:Value error, )?'(?P<given>.*)' is not one of (?P<choices>'.*')\.?")


def with_suggestion(message: str) -> str:
    """What is said of a word that is none of an option's choices, with the nearest of them."""
    match = _NO_CHOICE.fullmatch(message)
    if match is None:
        return message
    from recgen.spec.source import listing, suggestion

    choices = re.findall(r"'([^']*)'", match["choices"])
    said = f"{match['given']!r} is none of {listing(choices)}"
    return "; ".join(filter(None, (said, suggestion(match["given"], choices))))


class Commands(TyperGroup):
    """Commands whose foreseen errors are shown as text, without a traceback."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is called; where there is none, the nearest is named, and no other."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            from recgen.spec.source import near

            close = near(args[0], self.commands, cutoff=0.7)
            ctx.fail(f"No such command {args[0]!r}." + (f" Did you mean {close!r}?" if close else ""))
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = with_suggestion(error.message)
            raise
        except SpecError as error:
            complain(str(error))
        except ProofError as error:
            complain(f"the proof failed, so nothing is emitted: {error}")
            raise typer.Exit(CHECK_FAILED) from None
        except ProcessFailed as error:
            complain(str(error))
            raise typer.Exit(CHECK_FAILED) from None
        except BrokenPipeError:
            raise
        except OSError as error:
            named = error.filename and error.strerror
            complain(f"{shortened(str(error.filename))}: {error.strerror}" if named else str(error))
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

COMMANDS = (
    new,
    check,
    fmt,
    explain,
    verify,
    mutate,
    generate,
    compile,
    bench,
    gpu,
    demo,
    families,
    schema,
    doctor,
)
for command in COMMANDS:
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
