"""Arguments are matched by what is said, by name, by known synonyms; never by a guess between two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from recgen.verify.arguments import Refused, arguments, synonyms

OURS = ("q", "k", "v", "g")


def match(function: Callable[..., Any], *said: str, ours: tuple[str, ...] = OURS) -> dict[str, str]:
    return arguments(function, ours, said).pairs


def test_names_tell() -> None:
    assert match(lambda q, k, v, g: 0) == {"q": "q", "k": "k", "v": "v", "g": "g"}
    assert match(lambda G, V, K, Q: 0) == {"G": "g", "V": "v", "K": "k", "Q": "q"}
    assert match(lambda query, key, value, log_decay: 0) == {"query": "q", "key": "k", "value": "v", "log_decay": "g"}
    assert match(lambda C, B, x, dt: 0, ours=("dt", "x", "B", "C")) == {"C": "C", "B": "B", "x": "x", "dt": "dt"}


def test_what_has_a_default_keeps_it_and_the_scale_is_ours() -> None:
    mapping = arguments(lambda q, k, v, gk, chunk=64, sm_scale=None: 0, OURS, [])
    assert (mapping.scale, mapping.defaults) == ("sm_scale", ("chunk",))
    assert "gk=g" in str(mapping) and "chunk" in str(mapping)


def test_what_is_said_comes_first() -> None:
    assert match(lambda k, q, v, g: 0, "k=q", "q=k") == {"k": "q", "q": "k", "v": "v", "g": "g"}
    assert match(lambda first, k, v, g: 0, "first = q")["first"] == "q"


def test_arguments_by_position() -> None:
    def function(query: Any, /, k: Any, v: Any, g: Any) -> None: ...

    assert arguments(function, OURS, []).positional == ("query",)


@pytest.mark.parametrize(
    ("function", "said", "says"),
    [
        (lambda q, k, v: 0, (), "operator's g has no match.*wrap your function"),
        (lambda q, k, v, strange: 0, (), "pass --map strange=g"),
        (lambda a, b, c, d: 0, (), "your a, b, c and d have.* --map a=q --map b=k --map c=v --map d=g"),
        (lambda A, B, C, D: 0, (), "^the operator's q, k, v and g have .* --map A=q"),
        (lambda b, c, d, gate: 0, (), "^found gate=g; .* --map b=q --map c=k --map d=v"),
        (lambda a, b, c, d: 0, ("d=v",), "^found d=v, a=g; .* --map b=q --map c=k"),
        (lambda q, k, v, gate, forget_gate: 0, (), "could be more than one: pass --map gate=g or --map forget_gate=g"),
        (lambda q, k, v, g, beta: 0, (), "your beta has no match"),
        (lambda q, k, v, g: 0, ("gg=g",), "did you mean g"),
        (lambda q, k, v, g: 0, ("g=gate",), "the operator takes q, k, v and g, not 'gate'"),
        (lambda q, k, v, g: 0, ("g",), "write YOURS=OURS"),
        (lambda q, k, v, g: 0, ("g=g", "g=k"), "mapped already"),
        (lambda *all: 0, (), "without names"),
        (dict, (), "cannot be read|without names"),
    ],
)
def test_what_cannot_be_matched_says_what_to_pass(function: Any, said: tuple[str, ...], says: str) -> None:
    with pytest.raises(Refused, match=says):
        arguments(function, OURS, said)


def test_a_single_letter_is_told_from_its_capital() -> None:
    ours = ("q", "k", "v", "b")
    weighted = {"query": "q", "key": "k", "value": "v", "beta": "b"}
    assert match(lambda query, key, value, beta: 0, ours=ours) == weighted
    assert match(lambda C, B, x, b: 0, ours=ours) == {"C": "q", "B": "k", "x": "v", "b": "b"}
    assert match(lambda C, B, x: 0, ours=("q", "k", "v")) == {"C": "q", "B": "k", "x": "v"}


def test_synonyms_are_groups_in_lower_case_but_for_single_letters() -> None:
    assert all(name == name.lower() or len(name) == 1 for group in synonyms() for name in group)
    assert len(synonyms()) >= 8 and all(len(group) > 1 for group in synonyms())
