"""The report's curves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import cycle

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from recgen.demo.costs import Costs, Curve
from recgen.demo.training import History
from recgen.page.figures import COLOURS, INK, MARKERS, svg


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

    return svg(draw, "Loss of the language model during training")


def time_figure(costs: Costs) -> str:
    """Seconds of forward + backward by length."""
    return svg(
        lambda axes: cost(axes, costs.time, "sequence length T (tokens)", "forward + backward (ms)", 1e3),
        "Time by sequence length",
    )


def memory_figure(costs: Costs) -> str:
    """Peak memory of forward + backward by length."""
    return svg(
        lambda axes: cost(axes, costs.memory, "sequence length T (tokens)", "peak memory (MiB)", 2**-20),
        "Memory by sequence length",
    )


def token_figure(costs: Costs) -> str:
    """Time of one more token by its position in the text."""
    return svg(
        lambda axes: cost(axes, costs.token, "tokens before this one", "time of one token (ms)", 1e3, slopes=False),
        "Time of one more token by position",
    )


def cost(axes: Axes, curves: Sequence[Curve], across: str, upward: str, unit: float, slopes: bool = True) -> None:
    """Curves of a cost by length, both axes logarithmic; `upward` names the cost after it was multiplied by `unit`."""
    for curve, colour, marker in zip(curves, cycle(COLOURS), cycle(MARKERS), strict=False):
        label = f"{curve.name}  (∝ T^{curve.slope:.1f})" if slopes else curve.name
        costs = [cost * unit for cost in curve.costs]
        axes.plot(curve.lengths, costs, color=colour, marker=marker, ms=5, lw=2, label=label)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_locator(FixedLocator(sorted({n for curve in curves for n in curve.lengths})))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda n, _: f"{n:,.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda cost, _: f"{cost:,g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(across)
    axes.set_ylabel(upward)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), alignment="left")
