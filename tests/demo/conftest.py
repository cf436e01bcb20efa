"""A small corpus and a small model around a generated operator."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
import torch

import recgen
from recgen.demo.corpus import Corpus, read_corpus
from recgen.demo.model import LanguageModel
from tests.demo.small import SMALL


@pytest.fixture(scope="session")
def retnet() -> ModuleType:
    return recgen.load("retnet")


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A folder of three ASCII modules, one that is not ASCII, and one empty."""
    folder = tmp_path / "lib"
    folder.mkdir()
    for n, name in enumerate("cab"):
        (folder / f"{name}.py").write_bytes(f"def {name}():\r\n    return {n}\n".encode() * 20)
    (folder / "d.py").write_text("π = 3.14\n", encoding="utf-8")
    (folder / "e.py").write_text("", encoding="utf-8")
    return folder


@pytest.fixture
def corpus(sources: Path) -> Corpus:
    return read_corpus(sources)


@pytest.fixture
def model(corpus: Corpus, retnet: ModuleType) -> LanguageModel:
    torch.manual_seed(0)
    return LanguageModel(len(corpus.alphabet), SMALL, retnet)
