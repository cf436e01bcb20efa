"""The text that the demo trains on."""

from __future__ import annotations

from pathlib import Path

import pytest

from recgen.demo.corpus import Corpus, read_corpus


def test_files_come_in_order_of_name_and_the_last_is_held_out(corpus: Corpus) -> None:
    assert corpus.files == 3
    assert corpus.decode(corpus.train).startswith("def a():\n    return 1\n")
    assert corpus.decode(corpus.held_out) == "def c():\n    return 0\n" * 20


def test_tokens_and_text_are_the_same_thing(corpus: Corpus) -> None:
    assert corpus.decode(corpus.encode("return 2\n")) == "return 2\n"
    with pytest.raises(KeyError):
        corpus.encode("π")


def test_the_standard_library_is_there_and_is_read_the_same_way_twice() -> None:
    first, second = read_corpus(), read_corpus()
    assert len(first.train) > 10 * len(first.alphabet) > 500
    assert first.train.equal(second.train) and first.held_out.equal(second.held_out)


def test_a_folder_without_modules_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="holds 0 ASCII Python modules"):
        read_corpus(tmp_path)
