"""The results as pictures: one PNG, or one HTML page that needs nothing but itself."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import torch
from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import recgen
from recgen.bench.results import BOTH, STEP, Results
from recgen.bench.tables import HEADINGS, WORDS, cells, mebibytes, setting
from recgen.demo.costs import Curve
from recgen.demo.figures import cost
from recgen.files import write_atomically
from recgen.page import environment
from recgen.page.figures import STYLE, svg

Draw = Callable[[Axes], None]
LENGTH = "sequence length T (tokens)"


def curves(results: Results, what: str) -> list[Curve]:
    """Median seconds by length of every contender; one that stands beside several operators has one curve."""
    seconds: dict[str, dict[int, float]] = {}
    for c in results.comparisons:
        if c.what == what:
            seconds.setdefault(c.operator, {})[c.length] = c.operator_seconds.median
    for c in results.comparisons:
        if c.what == what:
            name = c.against if c.against in ("softmax", *seconds) else f"{c.operator}: {c.against}"
            seconds.setdefault(name, {}).setdefault(c.length, c.against_seconds.median)
    return [Curve(name, sorted(found), [found[n] for n in sorted(found)]) for name, found in seconds.items()]


def panels(results: Results) -> dict[str, Draw]:
    """Title → what draws it: time and memory by length, and one more token by position."""
    memory = [Curve(m.name, list(m.lengths), [float(peak) for peak in m.peaks]) for m in results.memory]
    drawn: dict[str, Draw] = {
        "Time by sequence length": partial(
            cost, curves=curves(results, BOTH), across=LENGTH, upward="forward + backward (ms)", unit=1e3, slopes=False
        ),
        "Memory by sequence length": partial(
            cost, curves=memory, across=LENGTH, upward="peak memory (MiB)", unit=2**-20, slopes=True
        ),
        "Time of one more token": partial(
            cost,
            curves=curves(results, STEP),
            across="tokens before this one",
            upward="time of one token (ms)",
            unit=1e3,
            slopes=False,
        ),
    }
    if not any(c.what == STEP for c in results.comparisons):
        drawn.popitem()
    return drawn


def write_picture(results: Results, path: Path) -> Path:
    """All panels side by side, as a PNG file."""
    drawn = panels(results)
    with rc_context(STYLE):
        figure = Figure(figsize=(6.4 * len(drawn), 5.4), layout="constrained")
        for number, draw in enumerate(drawn.values(), 1):
            draw(figure.add_subplot(1, len(drawn), number))
        figure.suptitle(setting(results))
        path.parent.mkdir(parents=True, exist_ok=True)
        FigureCanvasAgg(figure).print_png(str(path), metadata={"Software": f"recgen {recgen.__version__}"})
    return path


def write_page(results: Results, path: Path) -> Path:
    """Pictures and tables as one HTML file."""
    lengths = sorted({length for row in results.memory for length in row.lengths})
    text = (
        environment(Path(__file__).parent)
        .get_template("bench.html.j2")
        .render(
            version=recgen.__version__,
            operators=list(dict.fromkeys(c.operator for c in results.comparisons)),
            setting=setting(results),
            figures=[(title, Markup(svg(draw, title))) for title, draw in panels(results).items()],
            headings=[("operator", False), *((name, name not in WORDS) for name in HEADINGS)],
            rows=[
                [
                    (c.operator, False),
                    *((cell, name not in WORDS) for cell, name in zip(cells(c), HEADINGS, strict=True)),
                ]
                for c in results.comparisons
            ],
            notes=list(_notes(results)),
            lengths=lengths,
            memory=[
                (m.name, [_at(dict(zip(m.lengths, m.peaks, strict=True)), n) for n in lengths], f"T^{m.slope:.2f}")
                for m in results.memory
            ],
            machine=f"{platform.system()} {platform.machine()}, torch {torch.__version__}",
        )
    )
    write_atomically(path, text)
    return path


def _notes(results: Results) -> Iterable[str]:
    yield from dict.fromkeys(f"{c.operator} against the {c.against}: {c.note}." for c in results.comparisons if c.note)
    yield from (f"{note}." for note in results.notes)


def _at(peaks: dict[int, int], length: int) -> str:
    return mebibytes(peaks[length]) if length in peaks else ""
