"""README's table and docs/operators/ are what specs/ gives today: `make docs` writes them again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from docs import catalogue as pages
from docs.mathematics import sections
from recgen.resources import catalogue


@pytest.fixture
def written() -> dict[Path, str]:
    """The pages as they are."""
    return {path: path.read_text(encoding="utf-8") for path in pages.PAGES.glob("*.md")}


def test_table_and_pages_are_up_to_date() -> None:
    wanted = pages.files()
    assert pages.stale(wanted) == [], "run make docs"
    assert {path.stem for path in wanted if path.parent == pages.PAGES} == set(catalogue())


def test_every_page_has_what_is_derived(written: dict[Path, str]) -> None:
    assert written
    for path, text in written.items():
        first = "## Sum and read" if "\ncausal: false\n" in text else "## One step"
        assert {"## Meaning", first} <= set(text.splitlines()), path
        assert "## Adjoint" not in text and f"`{path.stem}`" in text


def test_what_is_not_up_to_date_is_seen(
    written: dict[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, path in (("ROOT", tmp_path), ("PAGES", tmp_path / "operators"), ("README", tmp_path / "README.md")):
        monkeypatch.setattr(pages, name, path)
    shutil.copytree(Path(pages.__file__).parent / "operators", tmp_path / "operators")
    moved = {tmp_path / "operators" / path.name: text for path, text in written.items()}
    assert pages.stale(moved) == []
    (tmp_path / "operators" / "gla.md").write_text("old")
    (tmp_path / "operators" / "retnet.md").unlink()
    (tmp_path / "operators" / "gone.md").write_text("of no operator")
    assert sorted(pages.stale(moved)) == [
        "operators/gla.md is not up to date",
        "operators/gone.md is of no operator",
        "operators/retnet.md is not up to date",
    ]


def test_latex_becomes_markdown() -> None:
    latex = (
        "\\subsection*{The \\( M \\) of it}\n5\\% of \\( x_{t} \\) *and* y_t.\n\n\\paragraph*{Part}\n"
        "\\begin{align*}\n  y &= \\operatorname{silu}(x)\n\\end{align*}\n"
        "\\[\n  z\n\\]\n\\begin{verbatim}\nas * it\n\\end{verbatim}\n"
        "\\begin{tabular}{ll}\n  form & cost \\\\\n  \\hline\n  step & \\( K \\) \\\\\n\\end{tabular}\n"
    )
    assert sections(latex) == {
        "The $M$ of it": "5% of $x_{t}$ \\*and\\* y\\_t.\n\n**Part**\n\n"
        "```math\n\\begin{align*}\n  y &= \\mathrm{silu}(x)\n\\end{align*}\n```\n\n"
        "```math\nz\n```\n\n```text\nas * it\n```\n\n"
        "| form | cost |\n| --- | --- |\n| step | $K$ |"
    }
