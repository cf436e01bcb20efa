"""The page of one operator: everything that was derived, in one file."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import recgen
from recgen.explain.page import page
from recgen.page.formulas import parts
from tests.browser import LAPTOP, PHONE, Browser
from tests.explain.conftest import Made
from tests.pages import assert_complete

GENERATED = Path(__file__).parents[2] / "generated"
SIZES = """
document.querySelectorAll("details").forEach(part => { part.open = true; });
return [...document.querySelectorAll("math, figure svg")].map(part => {
  const box = part.getBoundingClientRect();
  return [box.width, box.height];
});
"""
Operator = Callable[[str], Made]


def made(name: str, operator: Operator) -> str:
    return page(*operator(name), recgen.load_file(GENERATED / f"{name}.py"))


@pytest.mark.parametrize(("name", "pictures"), [("gla", 4), ("linear_attention_global", 1), ("s4d", 2)])
def test_the_page_holds_everything_and_needs_nothing_else(name: str, pictures: int, operator: Operator) -> None:
    text = made(name, operator)
    assert_complete(text)
    for section in ("meaning", "chunk-split", "adjoint", "bounds-and-factorisation", "costs", "proof"):
        assert text.count(f'<section id="{section}">') == 1 and f'href="#{section}"' in text
    assert text.count("<svg ") == pictures
    assert text.count("<math") > 40
    assert "<th>matrix products</th>" in text
    prose = re.sub(r"<style>.*?</style>|<pre.*?</pre>", "", text, flags=re.DOTALL)
    assert "\\" not in prose, "no LaTeX is left over"


def test_tables_are_tables() -> None:
    latex = "\n".join(
        [
            r"\subsection*{Costs}",
            r"\begin{tabular}{ll}",
            r"  a & b \\",
            r"  \hline",
            r"  x\_1 & \( \frac{K}{C} \) \\",
            r"  y^{}2 & 5 & 6\% \\",
            r"\end{tabular}",
            "Then.",
        ]
    )
    (part,) = parts(latex)
    assert "<tr><th>a</th><th>b</th></tr>" in part.body and "<td>x_1</td>" in part.body
    assert "<td>5</td><td>6%</td>" in part.body and "<p>Then.</p>" in part.body and "<math" in part.body


@pytest.mark.parametrize("name", ["gla", "mlstm"])
def test_a_browser_shows_it_on_a_laptop_and_on_a_phone(
    name: str, operator: Operator, browser: Browser, tmp_path: Path
) -> None:
    path = tmp_path / f"{name}.html"
    path.write_text(made(name, operator), encoding="utf-8")
    for width in (LAPTOP, PHONE):
        shown = browser.open(path, width)
        sizes = shown.run(SIZES)
        assert len(sizes) > 45 and min(map(min, sizes)) > 0, "a formula or picture of no size"
        assert (shown.overflow, shown.foreign, shown.errors) == (0, [], ()), "with everything unfolded"
    assert "Bounds and factorisation" in shown.text
