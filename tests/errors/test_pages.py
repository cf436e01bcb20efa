"""The pages of errors show what is printed today, and no error is without an example.

`python -m tests.errors.pages --update` writes the outputs again.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.errors.pages import PAGES, outputs, rewritten
from tests.errors.texts import ROOT, is_text, says_something, texts_in, texts_of_templates
from tests.errors.unseen import FILES, TEXTS

PACKAGE = ROOT / "recgen"
APART = ("bench", "cost", "demo", "doctor", "emit", "verify")
"""Folders for those who measure and test recgen, and its printers."""
SPECS = "spec"  # where every text is one of an error
WORDS = ("keys.py", "draft.py")  # but for what is said of keys, and beside them in a new spec


def flat(text: str) -> str:
    return " ".join(text.split())


SHOWN = flat(" ".join(output for page in PAGES for output in outputs(page.read_text(encoding="utf-8"))))


def sources() -> list[Path]:
    files = (path for path in sorted(PACKAGE.rglob("*.py")) if path.relative_to(PACKAGE).parts[0] not in APART)
    return [path for path in files if path.relative_to(PACKAGE).as_posix() not in FILES]


def unseen(texts: dict[str, int]) -> list[str]:
    """Those lines of the texts that no page shows, and that are not listed."""
    lines = [line for text in texts for line in text.split("\n") if is_text(line)]
    return [line for line in lines if flat(line) not in SHOWN and not any(known in line for known in TEXTS)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_page_shows_what_is_printed(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert rewritten(text) == text, "run python -m tests.errors.pages --update"


@pytest.mark.parametrize("source", sources(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_every_error_of_a_source_file_has_an_example(source: Path) -> None:
    everything = source.parent.name == SPECS and source.name not in WORDS
    missing = unseen(texts_in(source, only_errors=not everything))
    assert not missing, f"add an example to docs/errors that prints {missing}, or a line to tests/errors/unseen.py"


def test_every_error_of_an_emitted_module_has_an_example() -> None:
    found = list(texts_of_templates(ROOT / "templates"))
    assert len(found) > 30
    missing = [(name, text) for name, text in found if unseen({text: 0})]
    assert not missing, f"add an example to docs/errors/calls.md that prints {missing}"


def test_what_is_listed_as_unseen_is_there() -> None:
    texts = [text for path in sources() for text in texts_in(path)]
    texts += [text for _, text in texts_of_templates(ROOT / "templates")]
    assert [known for known in TEXTS if not any(known in text for text in texts)] == []
    assert [name for name in FILES if not says_something(PACKAGE / name)] == []


def test_every_example_has_an_output() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        examples = len(re.findall(r"^<!-- (?:spec|family|derive|raises|commands) -->$", text, re.MULTILINE))
        assert examples == len(list(outputs(text))) > 0, page


def test_a_text_that_is_new_is_seen(tmp_path: Path) -> None:
    source, error = tmp_path / "new.py", 'raise ValueError(f"{x} is a new kind of mistake")'
    source.write_text(f'"""Words that are not shown."""\nname = "no error at all"\n{error}\n')
    assert unseen(texts_in(source, only_errors=True)) == [" is a new kind of mistake"]
    source.write_text(f'"""Words that are not shown."""\n{error.replace("raise ValueError", "refuse")}\n')
    assert unseen(texts_in(source)) == [" is a new kind of mistake"]
