"""The curves as a picture and as a page: axes with units, a legend, and nothing fetched from elsewhere."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from recgen.bench.clock import Times
from recgen.bench.report import curves, panels, write_page, write_picture
from recgen.bench.results import Comparison, Memory, Results


def seconds(*values: float) -> Times:
    return Times(values)


@pytest.fixture
def results() -> Results:
    at = Comparison("gla", "softmax", 64, seconds(1e-3, 2e-3, 3e-3), seconds(4e-3, 4e-3, 4e-3), wanted=1.0)
    comparisons = [
        at,
        replace(at, length=128, operator_seconds=seconds(5e-3, 5e-3, 5e-3)),
        replace(at, what="forward", wanted=None),
        replace(at, against="token loop", length=64, note="1 round", wanted=None),
        replace(at, operator="<b>", length=64, wanted=9.0),
        replace(at, what="one token", length=16, wanted=None),
        replace(at, what="one token", length=256, wanted=None),
    ]
    memory = (Memory("gla", (64, 128), (2**20, 2**21)), Memory("softmax, fused", (64, 128), (2**20, 2**22)))
    return Results({"B": 1, "H": 8}, 2, tuple(comparisons), memory, ("gla is not compared with fla: none",), "CPU")


def test_every_contender_has_one_curve(results: Results) -> None:
    found = {curve.name: (curve.lengths, curve.costs) for curve in curves(results, "both")}
    assert found["gla"] == ([64, 128], [2e-3, 5e-3])
    assert set(found) == {"gla", "<b>", "softmax", "gla: token loop"}


def test_panels_have_axes_with_units_and_a_legend(results: Results) -> None:
    drawn = panels(results)
    assert len(drawn) == 3
    for draw in drawn.values():
        axes = Figure().add_subplot()
        draw(axes)
        assert re.search(r"tokens", axes.get_xlabel()) and re.search(r"\((ms|MiB)\)", axes.get_ylabel())
        legend = axes.get_legend()
        assert legend is not None and len(legend.get_texts()) == len(axes.get_lines()) >= 2
    without = replace(results, comparisons=tuple(c for c in results.comparisons if c.what != "one token"))
    assert len(panels(without)) == 2


def test_the_picture_is_a_png(results: Results, tmp_path: Path) -> None:
    data = write_picture(results, tmp_path / "new" / "curves.png").read_bytes()
    assert data.startswith(b"\x89PNG") and len(data) > 20_000


def test_the_page_stands_alone_and_holds_every_number(results: Results, tmp_path: Path) -> None:
    text = write_page(results, tmp_path / "new" / "bench.html").read_text(encoding="utf-8")
    assert text.count("<svg") == 3 and "viewport" in text
    assert not re.search(r"(?:src|href)=[\"']?https?:", text) and "@import" not in text
    assert text.count("<tr>") == 1 + len(results.comparisons) + 1 + len(results.memory)
    for said in ("2.0 ms", "2.00x (1.33–4.00)", "1x, met", "9x, missed", "T^2.00", "1 round", "not compared with fla"):
        assert said in text, said
    assert "&lt;b&gt;" in text and "<b>" not in text.split("<main>")[1]
