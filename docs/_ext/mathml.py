"""Formulas as MathML, written when the site is built: the pages need no script, no font and no network for them."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

from recgen.page.formulas import formula


def inline(translator: HTML5Translator, node: nodes.math) -> None:
    """`$…$` and the math role."""
    translator.body.append(f'<span class="math">{_converted(node, "inline")}</span>')
    raise nodes.SkipNode


def display(translator: HTML5Translator, node: nodes.math_block) -> None:
    """`$$…$$` and the math directive; what has a label has a number and an anchor too."""
    translator.body.append(translator.starttag(node, "div", CLASS="math notranslate"))
    translator.body.append(_converted(node, "block"))
    if node["number"]:
        number = get_node_equation_number(translator, node)
        translator.body.append(f'<span class="eqno">({number})</span>')
    translator.body.append("</div>\n")
    raise nodes.SkipNode


def _converted(node: nodes.Element, mode: str) -> str:
    latex = node.astext()
    try:
        text = str(formula(latex, mode))
    except Exception as error:  # the converter's errors have no class in common
        raise ExtensionError(f"{node.source}:{node.line}: this is no formula: {latex}: {error!r}") from error
    if "\\" in text:  # a command that it does not know comes out as it is
        raise ExtensionError(f"{node.source}:{node.line}: a formula has an unknown command: {latex}")
    return text


def setup(app: Sphinx) -> dict[str, Any]:
    """Makes `mathml` a value of html_math_renderer."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
