"""Parts of pages that are written from the code: a line `<!-- reference: NAME -->` becomes the Markdown of that name.

A page says in its own words what the part is; the part itself cannot be out of date.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import commands
import contract
import keys
import language
from sphinx.application import Sphinx

PARTS: dict[str, Callable[[], str]] = {
    "spec keys": keys.of_a_spec,
    "family keys": keys.of_a_family,
    "functions": language.functions,
    "feature functions": language.feature_functions,
    "complex functions": language.complex_functions,
    "draws": language.draws,
    "families": language.families,
    "commands": commands.commands,
    "constants": contract.constants,
    "contract": contract.functions,
    "python": contract.python,
    "catalogue": language.catalogue,
    "page of errors": lambda: "errors" if (DOCS / "errors.md").is_file() else "",
}
DOCS = Path(__file__).resolve().parent.parent
MARK = re.compile(r"^<!-- reference: (.+) -->$", re.MULTILINE)


def filled(text: str) -> str:
    """The page with its parts, and without doctest's word for an empty line. Raises KeyError for an unknown part."""
    return MARK.sub(lambda match: PARTS[match[1]]().strip("\n"), text).replace("\n<BLANKLINE>\n", "\n\n")


def with_children(name: str, text: str) -> str:
    """A page that has a folder of its name, with the folder's pages below it in the sidebar."""
    if not (DOCS / name).is_dir() or "{toctree}" in text:
        return text
    return f"{text}\n```{{toctree}}\n:hidden:\n:glob:\n\n/{name}/*\n```\n"


def _on_read(_: Sphinx, name: str, source: list[str]) -> None:
    source[0] = with_children(name, filled(source[0]))


def setup(app: Sphinx) -> dict[str, Any]:
    """Fills the parts in when a page is read."""
    app.connect("source-read", _on_read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
