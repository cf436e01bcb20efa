"""The pages of docs/ do what they say, and the walkthrough shows what the tool prints today.

Blocks of a page are run as tests/reader.py says. In the walkthrough, which `python -m tests.test_docs --update` writes
again, a comment names what the block after it holds:

    <!-- file: PATH -->                a file of the repository
    <!-- explain: STAGE / SECTION -->  a stage of `recgen explain gla`, a titled section of it,
                                       or the paragraph that begins with these words
    <!-- code: NAME -->                a function of generated/gla.py
    <!-- run -->                       the output of the Python block that follows, shown after it
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import sys
from functools import cache
from pathlib import Path

import pytest

import recgen
from recgen import compiler
from tests.reader import Reader, blocks, environment

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "walkthrough.md"
SPEC = ROOT / "specs" / "gla.yaml"
MODULE = ROOT / "generated" / "gla.py"
DOCS = ROOT / "docs"
ELSEWHERE = {DOCS / "operators", DOCS / "errors", DOCS / "errors.md", PAGE}  # have tests of their own
RUN = [
    page
    for page in sorted(DOCS.rglob("*.md"))
    if not ELSEWHERE & {page, page.parent} and blocks(page.read_text(encoding="utf-8"))
]

DIRECTIVE = re.compile(
    r"^<!-- (?P<kind>file|explain|code): (?P<what>.+?) -->\n(?:\n```\w*\n.*?^```\n)?"
    r"|^<!-- run -->\n\n```python\n(?P<program>.*?)^```\n(?:\n```text\n.*?^```\n)?",
    re.MULTILINE | re.DOTALL,
)


def rewritten(page: str) -> str:
    """The page with every block as the tool prints it now."""
    return DIRECTIVE.sub(_block, page)


def _block(match: re.Match[str]) -> str:
    if match["program"] is not None:
        return f"<!-- run -->\n\n```python\n{match['program']}```\n\n```text\n{_run(match['program'])}```\n"
    kind, what = match["kind"], match["what"]
    language, text = {"file": _file, "explain": _explain, "code": _code}[kind](what)
    return f"<!-- {kind}: {what} -->\n\n```{language}\n{text.strip(chr(10))}\n```\n"


def _file(path: str) -> tuple[str, str]:
    return Path(path).suffix.removeprefix("."), (ROOT / path).read_text(encoding="utf-8")


def _explain(what: str) -> tuple[str, str]:
    stage, _, section = what.partition(" / ")
    text = _stage(stage)
    if not section:
        return "text", text
    found = re.split(r"^(.+)\n-+\n", text, flags=re.MULTILINE)
    sections = dict(zip(found[1::2], found[2::2], strict=True))
    if section in sections:
        return "text", sections[section]
    return "text", next(part for part in text.split("\n\n") if part.startswith(section))


@cache
def _stage(stage: str) -> str:
    return compiler.explain(recgen.read(SPEC), stage)


def _code(name: str) -> tuple[str, str]:
    source = MODULE.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            lines = source.splitlines()[first - 1 : node.end_lineno]
            return "python", "\n".join(line.removeprefix(" " * node.col_offset) for line in lines)
    raise LookupError(f"{MODULE} has no function {name}")


def _run(program: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, str(PAGE), "exec"), {"__name__": "walkthrough"})
    return printed.getvalue()


def test_the_walkthrough_shows_what_the_tool_prints() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert rewritten(page) == page, "run python -m tests.test_docs --update"


def test_every_form_agrees_in_the_walkthrough() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert "chunk True" in page and "False" not in page


def test_a_stale_block_is_seen() -> None:
    page = "<!-- file: specs/gla.yaml -->\n\n```yaml\nname: old\n```\n\nMore.\n"
    assert rewritten(page) == f"<!-- file: specs/gla.yaml -->\n\n```yaml\n{SPEC.read_text().strip()}\n```\n\nMore.\n"
    assert rewritten("<!-- file: specs/gla.yaml -->\n\nMore.\n") == rewritten(page), "a missing block is put in"


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of someone who follows all pages: what one compiles, the next finds in the cache."""
    return environment(tmp_path_factory.mktemp("user"))


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.name)
def test_every_block_of_a_page_does_what_it_says(page: Path, user: dict[str, str], tmp_path: Path) -> None:
    with Reader(tmp_path, user) as reader:
        reader.follow(page.read_text(encoding="utf-8"))


def test_a_page_that_says_something_else_is_refused(user: dict[str, str], tmp_path: Path) -> None:
    wrong = (
        "```python\nprint(1)\n```\n\n```text\n2\n```\n",
        "```python\nraise SystemExit\n```\n",
        "```console\n$ echo 1\n2\n```\n",
        "```console\n$ false\n```\n",
        "```console\n$ true  # exits with 2\n```\n",
        "```sh\nfalse\n```\n",
        "```text\nout of nothing\n```\n",
        "```perl\nprint 1\n```\n",
    )
    with Reader(tmp_path, user) as reader:
        reader.follow("```python\nx = 1\n```\n\n```python\nprint(x)\n```\n\n```text\n1\n```\n")
        reader.follow("```yaml\n# a.yaml\nname: a\n```\n\n```console\n$ cat a.yaml\n# a.yaml\nname: a\n```\n")
        for page in wrong:
            with pytest.raises(AssertionError):
                reader.follow(page)


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page}: {target}"


if __name__ == "__main__":
    if sys.argv[1:] != ["--update"]:
        sys.exit("usage: python -m tests.test_docs --update")
    PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
