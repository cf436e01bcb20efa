"""Real text that every machine with Python has: the standard library's own sources, one character a token."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

HELD_OUT = 10
"""Every tenth file is held out for validation, so that no line of it was ever trained on."""


@dataclass(frozen=True)
class Corpus:
    """Characters as integers. `train` and `held_out` are int64 [N]; `alphabet[i]` is the character of token i."""

    alphabet: str
    train: Tensor
    held_out: Tensor
    files: int

    def encode(self, text: str) -> Tensor:
        """The tokens of `text`, int64 [len(text)]; KeyError for a character the corpus does not have."""
        index = {character: i for i, character in enumerate(self.alphabet)}
        return torch.tensor([index[character] for character in text], dtype=torch.int64)

    def decode(self, tokens: Tensor) -> str:
        """The text of int64 tokens [N]."""
        return "".join(self.alphabet[i] for i in tokens.tolist())


def read_corpus(folder: Path | None = None) -> Corpus:
    """Read the top-level ASCII modules of `folder` (default: this Python's standard library), in order of name."""
    folder = folder or Path(sysconfig.get_paths()["stdlib"])
    texts = list(_ascii_modules(folder))
    if len(texts) < 2:
        raise FileNotFoundError(f"{folder} holds {len(texts)} ASCII Python modules; the demo needs at least 2")
    alphabet = "".join(sorted(set().union(*texts)))
    train = "".join(text for i, text in enumerate(texts) if i % HELD_OUT != HELD_OUT - 1 and i != len(texts) - 1)
    held_out = "".join(text for i, text in enumerate(texts) if i % HELD_OUT == HELD_OUT - 1 or i == len(texts) - 1)
    return Corpus(alphabet, _tokens(train, alphabet), _tokens(held_out, alphabet), len(texts))


def _ascii_modules(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("*.py")):
        content = path.read_bytes()
        if content and content.isascii():
            yield content.decode("ascii").replace("\r\n", "\n")


def _tokens(text: str, alphabet: str) -> Tensor:
    table = torch.zeros(128, dtype=torch.int64)
    for i, character in enumerate(alphabet):
        table[ord(character)] = i
    return table[torch.frombuffer(bytearray(text, "ascii"), dtype=torch.uint8).long()]
