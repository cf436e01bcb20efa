"""Pages of text: in a terminal, titles and remarks stand out; elsewhere the text is as it is."""

from __future__ import annotations

import re

import typer
from rich.console import Console
from rich.text import Text

RULE = re.compile(r"[-=]{3,}")
REMARK = re.compile(r"\((?:within|from) [\w ]+\)$|· \w+$|  #.*$")
PART = re.compile(r"  \S")


def show(text: str) -> None:
    """Prints a page."""
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        typer.echo(text.rstrip("\n"))
        return
    lines = text.rstrip("\n").split("\n")
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        console.print(_styled(line, following))


def _styled(line: str, following: str) -> Text:
    if RULE.fullmatch(line):
        return Text(line, style="dim")
    if RULE.fullmatch(following):
        return Text(line, style="bold cyan")
    found = Text(line)
    remark = REMARK.search(line)
    if remark:
        found.stylize("dim", remark.start())
    if PART.match(line) and following.startswith("    ") and "  " not in line.strip() and "=" not in line:
        found.stylize("bold")
    return found
