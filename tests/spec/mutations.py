"""Specs that are nearly right: the catalogue's files with a few mistakes in them, and documents of the right words."""

from __future__ import annotations

import json
import random
import re
from typing import Any

from hypothesis import strategies as st

from recgen.resources import catalogue, families_dir

TEXTS = {name: path.read_text(encoding="utf-8") for name, path in catalogue().items()}
FAMILIES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(families_dir().glob("*.yaml"))}

_TOKEN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9.]+|\*\*|[^\sA-Za-z0-9_]")
_WORDS = sorted({token for text in (*TEXTS.values(), *FAMILIES.values()) for token in _TOKEN.findall(text)})
_MORE = [
    "max",
    "min",
    "abs",
    "mod",
    "where",
    "sum",
    "softmax",
    "outer",
    "concat",
    "matmul",
    "complex",
    "log_decay",
    "vector",
    "exclusive",
    "false",
    "B T H K V",
    "B T D",
    "~",
    "<",
    "-1",
    "0",
    "1e30",
    "h",
    "V",
    "M",
    "i",
    "&a",
    "!t",
]


def _tokens(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in _TOKEN.finditer(text)]


def _mutate(text: str, draw: random.Random) -> str:
    kind = draw.choice(["token", "token", "token", "swap", "delete line", "repeat line", "move line", "byte", "cut"])
    spans, lines = _tokens(text), text.splitlines(keepends=True)
    if kind in ("token", "swap") and len(spans) > 1:
        a, b = sorted(draw.sample(spans, 2))
        if kind == "token":
            return text[: a[0]] + draw.choice(_WORDS + _MORE) + text[a[1] :]
        return text[: a[0]] + text[b[0] : b[1]] + text[a[1] : b[0]] + text[a[0] : a[1]] + text[b[1] :]
    if lines and kind.endswith("line"):
        line = lines.pop(draw.randrange(len(lines)))
        copies = {"delete line": 0, "repeat line": 2, "move line": 1}[kind]
        for _ in range(copies):
            lines.insert(draw.randrange(len(lines) + 1), line)
        return "".join(lines)
    at = draw.randrange(len(text) + 1)
    if kind == "byte":
        return text[:at] + chr(draw.randrange(256)) + text[at + 1 :]
    return text[:at] + text[at + draw.randrange(1, 12) :]


def mutated(texts: dict[str, str] = TEXTS) -> st.SearchStrategy[str]:
    """A text with one to four mistakes; any may leave it right."""

    def build(name: str, seed: int, count: int) -> str:
        draw, text = random.Random(seed), texts[name]
        for _ in range(count):
            text = _mutate(text, draw)
        return text

    return st.builds(build, st.sampled_from(sorted(texts)), st.integers(0, 2**32), st.integers(1, 4))


_KEYS = [
    "name",
    "title",
    "cite",
    "inputs",
    "params",
    "decay",
    "type",
    "per",
    "log",
    "value",
    "bounds",
    "family",
    "constants",
    "query",
    "key",
    "feature_map",
    "key_weight",
    "normalizer",
    "kind",
    "eps",
    "floor",
    "readout",
    "bonus",
    "skip",
    "gate",
    "rotation",
    "causal",
    "state",
    "scale",
    "axes",
    "init",
    "buffer",
    "g",
    "w",
    "q",
    "k",
]
_SCALARS = st.one_of(
    st.sampled_from(
        [
            "mine",
            "gated",
            "fixed",
            "learned",
            "key",
            "head",
            "channel",
            "sum",
            "vector",
            "exclusive",
            "B T H",
            "B T H K",
            "H",
            "H K",
            "-exp(w)",
            "logsigmoid(g)",
            "x",
            "elu(x) + 1",
            "scalar_gate",
            "1 / K",
            "inf",
        ]
    ),
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.floats(),
    st.text(max_size=4),
)


def _document(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.dictionaries(st.sampled_from(_KEYS), inner, max_size=6), st.lists(inner, max_size=3))


STRUCTURES: st.SearchStrategy[str] = st.builds(
    lambda content, named: json.dumps({"name": "mine", **content} if named else content, ensure_ascii=False),
    st.dictionaries(st.sampled_from(_KEYS), st.recursive(_SCALARS, _document, max_leaves=12), max_size=8),
    st.booleans(),
)
"""Documents whose keys and values are a spec's own, at any place."""
