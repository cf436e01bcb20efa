"""The command line as Markdown, from the program itself: what its `--help` says."""

from __future__ import annotations

import re
from typing import Any

import typer

from recgen.cli import app

MARKUP = re.compile(r"\[/?\w+\]")
OPTION = re.compile(r"((?:--?[\w-]+(?:, )?)+) ?(?:<|\[|list\[)*(.*?)[>\]]*")


def commands() -> str:
    """One section for each command."""
    group: Any = typer.main.get_command(app)
    context = typer.Context(group, info_name="recgen")
    return "\n\n".join(_command(command, context) for command in group.commands.values())


def _command(command: Any, parent: typer.Context) -> str:
    context = typer.Context(command, info_name=command.name, parent=parent)
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    lines = [f"## recgen {command.name}", "", _plain(command.help or ""), "", f"`{usage}`", ""]
    rows = [row for param in command.get_params(context) if (row := _row(param, context)) is not None]
    lines += ["| argument | takes | meaning |", "| --- | --- | --- |"]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    example = _plain(command.epilog or "").removeprefix("Example: ")
    return "\n".join([*lines, "", f"Example: `{example}`" if example else ""]).rstrip()


def _row(param: Any, context: typer.Context) -> tuple[str, str, str] | None:
    """An argument's or option's name, its values and its meaning; none for what --help does not show."""
    if param.param_type_name != "option":
        return f"`{param.metavar or param.human_readable_name}`", "", _text(param.help or "")
    record = param.get_help_record(context)
    if record is None:
        return None
    names, takes = OPTION.fullmatch(record[0]).groups()
    return f"`{names}`", ", ".join(f"`{word}`" for word in takes.split("|") if word), _text(record[1])


def _plain(text: str) -> str:
    """Help text without the markup of its colours."""
    return " ".join(MARKUP.sub("", text).split())


def _text(text: str) -> str:
    return _plain(text).replace("<", "&lt;").replace("*", "\\*")
