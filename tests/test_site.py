"""The site is built without a warning, its links lead somewhere, and a browser shows it on a laptop and on a phone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import recgen
from recgen.algebra.widths import FEATURE_LANGUAGE
from recgen.cli.app import app
from recgen.spec.families import load_families
from recgen.spec.shape import SpecShape
from tests.browser import LAPTOP, PHONE, Browser, Page

pytestmark = pytest.mark.xdist_group("site")  # the fixture builds it: once, by one worker

ROOT = Path(__file__).resolve().parent.parent
BUILD = (sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html")
FORMULAS = ("index", "tutorial", "operators/gla", "operators/s4d", "operators/mlstm")
OTHERS = (
    "catalogue",
    "walkthrough",
    "howto/decoding",
    "reference/spec",
    "reference/expressions",
    "reference/module",
    "reference/commands",
    "reference/python",
    "decisions/schedules",
)

# The text of a page outside code and formulas.
PROSE = """
const copy = document.body.cloneNode(true);
copy.querySelectorAll("pre, code, math, script, style, svg").forEach(part => part.remove());
return copy.textContent;
"""
# How large the formulas of the article are.
SIZES = """
return [...document.querySelectorAll("article math")].map(formula => {
  const box = formula.getBoundingClientRect();
  return [box.width, box.height];
});
"""
# What of the article lies beyond the window's edge, and in no box of its own that scrolls.
CUT_OFF = """
const reachable = part => {
  for (let box = part; box.tagName !== "ARTICLE"; box = box.parentElement)
    if (["auto", "scroll"].includes(getComputedStyle(box).overflowX) && box.getBoundingClientRect().right <= innerWidth)
      return true;
  return false;
};
return [...document.querySelectorAll("article *")]
  .filter(part => part.getBoundingClientRect().right > innerWidth + 1 && !reachable(part))
  .map(part => part.outerHTML.slice(0, 100));
"""


class Links(HTMLParser):
    """What a page points to, and the places in it that can be pointed at."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.places: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.targets += [value for key in ("href", "src") if (value := found.get(key))]
        self.places |= {value for key in ("id", "name") if (value := found.get(key))}


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make site` builds it, from docs/ that stays as it is: another build may be reading it."""
    sources = _sources()
    out = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [*BUILD, "-d", str(tmp_path_factory.mktemp("doctrees")), str(ROOT / "docs"), str(out)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr
    assert _sources() == sources
    return out


def _sources() -> set[Path]:
    return {path for path in (ROOT / "docs").rglob("*") if "__pycache__" not in path.parts}


@pytest.fixture(scope="session")
def pages(site: Path) -> dict[Path, Links]:
    return {page: Links(page) for page in site.rglob("*.html")}


def test_every_source_has_a_page(site: Path) -> None:
    sources = {page.relative_to(ROOT / "docs").with_suffix("") for page in (ROOT / "docs").rglob("*.md")}
    assert {source for source in sources if not (site / source).with_suffix(".html").is_file()} == set()


def test_links_lead_somewhere(pages: dict[Path, Links]) -> None:
    broken = [f"{page.name}: {target}" for page, target in _inside(pages) if not _leads(page, target, pages)]
    assert not broken


def test_the_reference_has_everything(site: Path, pages: dict[Path, Links]) -> None:
    def places(name: str) -> set[str]:
        return pages[site / "reference" / f"{name}.html"].places

    assert {name.replace("_", "-") for name in SpecShape.model_fields} <= places("spec")
    assert {name.replace("_", "-") for name in load_families()} <= places("families")
    assert {f"recgen-{command.name}" for command in app.registered_commands} <= places("commands")
    assert {f"recgen.{name}" for name in recgen.__all__ if name != "__version__"} <= places("python")
    assert {f"generated.mamba2.{name}" for name in ("operator", "naive", "step", "Operator")} <= places("module")
    expressions = (site / "reference" / "expressions.html").read_text(encoding="utf-8")
    assert not [name for name in FEATURE_LANGUAGE if f'"pre">{name}(' not in expressions]


def test_a_formula_that_cannot_be_set_fails_the_build(tmp_path: Path) -> None:
    for name, text in (
        (
            "conf.py",
            f"import sys\nsys.path[:0] = [{str(ROOT / 'docs/_ext')!r}]\n"
            "extensions = ['mathml']\nhtml_math_renderer = 'mathml'\n",
        ),
        ("index.rst", "Title\n=====\n\n.. math:: \\nonsense{x}\n"),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = subprocess.run([*BUILD, str(tmp_path), str(tmp_path / "out")], capture_output=True, text=True, timeout=120)
    assert done.returncode != 0 and "unknown command: \\nonsense{x}" in done.stderr


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert 'src="http' not in (text := page.read_text(encoding="utf-8")), page
        assert not [line for line in text.splitlines() if "<link" in line and 'href="http' in line], page


def _inside(pages: dict[Path, Links]) -> Iterator[tuple[Path, str]]:
    for page, links in pages.items():
        for target in links.targets:
            if urlsplit(target).scheme not in ("http", "https", "data", "mailto"):
                yield page, target


def _leads(page: Path, target: str, pages: dict[Path, Links]) -> bool:
    address = urlsplit(target)
    file = (page.parent / unquote(address.path)).resolve() if address.path else page
    place = unquote(address.fragment)
    return file.is_file() and (not place or file not in pages or place in pages[file].places)


@pytest.mark.parametrize("width", (LAPTOP, PHONE))
@pytest.mark.parametrize("name", FORMULAS + OTHERS)
def test_a_browser_shows_it(browser: Browser, site: Path, name: str, width: int) -> None:
    page = browser.open(site / f"{name}.html", width)
    assert page.overflow == 0 and page.run(CUT_OFF) == []
    assert (page.broken_pictures, page.foreign, page.errors) == ([], [], ())
    assert _latex_in(page) == []
    sizes = page.run(SIZES)
    assert all(w > 0 and h > 0 for w, h in sizes)
    assert len(sizes) >= 2 or name not in FORMULAS


def test_the_pictures_of_the_first_page_are_there(browser: Browser, site: Path) -> None:
    page = browser.open(site / "index.html", PHONE)
    widths = page.run("return [...document.querySelectorAll('article figure svg')].map(x => x.clientWidth)")
    assert len(widths) == 2 and all(200 < shown <= PHONE for shown in widths)


def _latex_in(page: Page) -> list[str]:
    """Words of the prose that look like a formula nobody has set."""
    return [word for word in page.run(PROSE).split() if "$" in word or "\\" in word]
