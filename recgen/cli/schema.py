"""`recgen schema`: the keys of a spec for editors, which complete and explain them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recgen.cli.common import wrote

NAME = "schema"
HELP = "Print the JSON Schema of a spec, or of a decay family, for editors."
EXAMPLE = "recgen schema --out recgen.schema.json"


def run(
    family: Annotated[bool, typer.Option("--family", help="The schema of a decay family's file.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", dir_okay=False, help="Write it to this file instead."),
    ] = None,
) -> None:
    """A YAML file names its schema in its first line: # yaml-language-server: $schema=recgen.schema.json"""
    from recgen.files import write_atomically
    from recgen.spec.schema import family_schema, schema_text, spec_schema

    text = schema_text(family_schema() if family else spec_schema())
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_atomically(out, text)
        wrote(out)
