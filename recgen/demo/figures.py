"""The report's curves as SVG text to put into a page: no fixed size, the page's own font, legible on light and dark."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Sequence

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from recgen.demo.costs import Costs, Curve
from recgen.demo.training import History

INK = "#6b7280"
COLOURS = ("#0d9488", "#ea580c", "#7c3aed")
MARKERS = ("o", "s", "^")
STYLE = {
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


def loss_figure(history: History, characters: int) -> str:
    """Training and held-out loss by step; `characters` is the size of the alphabet, the loss of a blind guess."""

    def draw(axes: Axes) -> None:
        axes.plot(history.steps, history.train, color=COLOURS[0], alpha=0.35, lw=1, label="training batch")
        axes.plot(history.checked, history.held_out, color=COLOURS[1], lw=2, marker="o", ms=4, label="held-out files")
        blind = math.log2(characters)
        axes.axhline(blind, color=INK, lw=1, ls=":", label=f"guessing blindly ({blind:.2f} bits)")
        axes.set_xlabel("training step")
        axes.set_ylabel("loss (bits per character)")
        axes.set_ylim(bottom=0)
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), alignment="left")

    return _svg(draw, "Loss of the language model during training")


def time_figure(costs: Costs) -> str:
    """Seconds of forward + backward by length."""
    return _svg(
        lambda axes: _cost(axes, costs.time, "sequence length T (tokens)", "forward + backward (ms)", 1e3),
        "Time by sequence length",
    )


def memory_figure(costs: Costs) -> str:
    """Peak memory of forward + backward by length."""
    return _svg(
        lambda axes: _cost(axes, costs.memory, "sequence length T (tokens)", "peak memory (MiB)", 2**-20),
        "Memory by sequence length",
    )


def token_figure(costs: Costs) -> str:
    """Time of one more token by its position in the text."""
    return _svg(
        lambda axes: _cost(axes, costs.token, "tokens before this one", "time of one token (ms)", 1e3, slopes=False),
        "Time of one more token by position",
    )


def _cost(axes: Axes, curves: Sequence[Curve], across: str, upward: str, unit: float, slopes: bool = True) -> None:
    for curve, colour, marker in zip(curves, COLOURS, MARKERS, strict=False):
        label = f"{curve.name}  (∝ T^{curve.slope:.1f})" if slopes else curve.name
        costs = [cost * unit for cost in curve.costs]
        axes.plot(curve.lengths, costs, color=colour, marker=marker, ms=5, lw=2, label=label)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_locator(FixedLocator(sorted({n for curve in curves for n in curve.lengths})))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda n, _: f"{n:,.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda cost, _: f"{cost:,g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(across)
    axes.set_ylabel(upward)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), alignment="left")


def _svg(draw: Callable[[Axes], None], title: str) -> str:
    with rc_context(STYLE):
        figure = Figure(figsize=(6.2, 4.2), layout="constrained")
        figure.patch.set_alpha(0)
        axes = figure.add_subplot()
        axes.patch.set_alpha(0)
        draw(axes)
        file = io.StringIO()
        FigureCanvasSVG(figure).print_svg(file, metadata={"Date": None, "Title": title})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    return re.sub(r'(<svg [^>]*?)\bwidth="[^"]*" ?|\bheight="[^"]*pt" ?', r"\1", text, count=2).strip()
