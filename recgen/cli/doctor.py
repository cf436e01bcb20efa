"""`recgen doctor`: what works on this machine, and what to do about what does not."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from recgen.cli.common import CHECK_FAILED, progress_bar, write_report

NAME = "doctor"
HELP = "Say what works on this machine, and what to do about what does not."
EXAMPLE = "recgen doctor"

MARKS = {"works": "✓", "absent": "–", "broken": "✗"}


def run(
    json: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", dir_okay=False, help="Write everything as JSON; print it if FILE is -."),
    ] = None,
) -> None:
    """Exit code 1: recgen cannot generate or verify here. A GPU and its compilers may be absent for that."""
    from recgen.doctor import CHECKS, able, examine
    from recgen.files import json_text

    findings = []
    with progress_bar("doctor") as advance:
        for number, check in enumerate(CHECKS):
            advance(number, len(CHECKS), check.what)
            findings.append(examine(check))
    ok = able(findings)
    data = {"ok": ok, "checks": [asdict(f) for f in findings]}
    if json == Path("-"):
        typer.echo(json_text(data), nl=False)
    else:
        for f in findings:
            typer.echo(f"{MARKS[f.state]} {f.what:<15} {f.found}" + (f"\n{'':>18}fix: {f.fix}" if f.fix else ""))
        typer.echo("recgen can generate and verify here" if ok else "recgen cannot work here until what has ✗ is fixed")
        if json is not None:
            write_report(json, data)
    if not ok:
        raise typer.Exit(CHECK_FAILED)
