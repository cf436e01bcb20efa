"""Every command says what it does, with an example that works as written."""

from __future__ import annotations

import shlex
from collections.abc import Callable

import pytest
import typer
from typer.testing import Result

import recgen
from recgen.cli import app
from recgen.cli.app import COMMANDS

Command = Callable[..., Result]


def test_help_lists_every_command(recgen_command: Command) -> None:
    result = recgen_command("--help")
    assert result.exit_code == 0
    for command in COMMANDS:
        assert command.NAME in result.stdout


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.NAME)
def test_a_command_explains_itself(command: object, recgen_command: Command) -> None:
    result = recgen_command(command.NAME, "--help")
    assert result.exit_code == 0
    assert command.HELP in " ".join(result.stdout.split())
    assert command.EXAMPLE in result.stdout


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.NAME)
def test_the_example_is_good_usage(command: object) -> None:
    program, *arguments = shlex.split(command.EXAMPLE)
    assert program == "recgen"
    parser = typer.main.get_command(app).commands[arguments[0]]
    assert parser.make_context(command.NAME, arguments[1:]).info_name == command.NAME


def test_the_version(recgen_command: Command) -> None:
    assert recgen_command("--version").stdout == f"recgen {recgen.__version__}\n"


def test_no_command_shows_the_help(recgen_command: Command) -> None:
    result = recgen_command()
    assert result.exit_code == 2
    assert "generate" in result.stdout + result.stderr
