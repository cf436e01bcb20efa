"""What the HTML pages share: formulas as MathML, figures as inline SVG, and one style sheet."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup


def environment(folder: Path) -> Environment:
    """The templates of a folder, strict about names; whatever they are given is escaped. `style` is the style sheet."""
    made = Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["style"] = Markup((Path(__file__).parent / "page.css").read_text(encoding="utf-8"))
    return made
