"""Figures as SVG text to put into a page: no fixed size, the page's own font, legible on light and dark."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable
from typing import Any

from markupsafe import escape
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

INK = "#6b7280"
COLOURS = ("#0d9488", "#ea580c", "#7c3aed", "#2563eb", "#ca8a04", "#db2777", "#64748b", "#65a30d")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "recgen",
    "font.family": "sans-serif",
    "font.size": 11.5,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": INK,
    "grid.alpha": 0.18,
    "legend.frameon": False,
}


def svg(draw: Callable[[Axes], None], title: str) -> str:
    """What is drawn on one pair of axes."""
    return svg_of(lambda figure: draw(transparent(figure.add_subplot())), title)


def transparent(axes: Axes) -> Axes:
    """The axes, the page showing through."""
    axes.patch.set_alpha(0)
    return axes


def svg_of(draw: Callable[[Figure], None], title: str, size: tuple[float, float] = (6.2, 4.2)) -> str:
    """What is drawn on a figure of this shape. `title` is what a screen reader says in its place."""
    with rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        figure.patch.set_alpha(0)
        draw(figure)
        file = io.StringIO()
        FigureCanvasSVG(figure).print_svg(file, metadata={"Date": None, "Title": title})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r'(<svg [^>]*?)\bwidth="[^"]*" ?|\bheight="[^"]*pt" ?', r"\1", text, count=2).strip()
    own = hashlib.sha256(title.encode()).hexdigest()[:8]  # a page has several figures: each calls its parts otherwise
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>f{own}-", text)
    return text.replace("<svg ", f'<svg role="img" aria-label="{escape(title)}" ', 1)
