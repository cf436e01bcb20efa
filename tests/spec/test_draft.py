"""What `recgen new` can write: whatever is chosen is a spec that derives, or is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest

from recgen.algebra.derive import derive
from recgen.errors import SpecError
from recgen.spec import read_text
from recgen.spec.draft import FEATURE_MAPS, NONE, NORMALIZERS, READOUTS, Draft
from recgen.spec.families import load_families
from recgen.spec.layout import normal_form
from recgen.spec.model import NormalizerKind, ReadoutKind

KNOWN = load_families()
FULL: list[dict[str, Any]] = [
    {"feature_map": "relu", "normalizer": "sum", "skip": True},
    {"readout": "exclusive", "gate": True, "feature_map": "softmax", "normalizer": "abs_sum"},
]


def fitting(draft: Draft, choices: dict[str, Any]) -> Draft:
    """The draft with those of the choices that fit what was chosen before, as the questions offer them."""
    for key, value in choices.items():
        chosen = replace(draft, **{key: value})
        draft = chosen if chosen.fits() else draft
    return draft


@pytest.mark.parametrize("choices", FULL, ids=["inclusive", "exclusive"])
@pytest.mark.parametrize("family", [NONE, *KNOWN])
def test_every_family_makes_specs_that_derive(family: str, choices: dict[str, Any]) -> None:
    draft = fitting(Draft("mine", "A title", family=family), choices)
    text = draft.text("recgen.schema.json")
    spec = read_text(text)
    if choices is FULL[1]:
        derive(spec, prove=False)
    assert normal_form(text) == text
    assert (spec.decay.family or NONE) == family and spec.normalizer.kind == draft.normalizer
    assert spec.readout.kind == draft.readout and bool(spec.readout.skip) == draft.skip
    assert (spec.readout.gate is not None) == draft.gate
    assert (spec.state == "vector") == (family in KNOWN and KNOWN[family].per == "channel")


@pytest.mark.parametrize("choices", FULL, ids=["inclusive", "exclusive"])
def test_all_choices_fit_a_decay_per_key(choices: dict[str, Any]) -> None:
    assert fitting(Draft("mine"), choices) == replace(Draft("mine"), **choices)


@pytest.mark.parametrize("feature_map", FEATURE_MAPS)
def test_every_feature_map(feature_map: str) -> None:
    spec = read_text(Draft("mine", feature_map=feature_map).text())
    derive(spec, prove=False)
    assert spec.query_map == spec.key_map == read_text(f"name: a\nfeature_map: {FEATURE_MAPS[feature_map]}").key_map


def test_a_map_of_ones_own_is_an_expression() -> None:
    assert read_text(Draft("mine", feature_map="x ** 2 + 1").text()).key_map.text == "x ** 2 + 1"


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"family": "key_gat"}, "did you mean key_gate"),
        ({"family": "diagonal", "normalizer": "sum"}, "a normalizer under a complex decay"),
        ({"family": "griffin", "feature_map": "relu"}, "a vector state has no feature_map"),
        ({"family": "value_gate", "normalizer": "sum"}, "the decay varies by value channel"),
        ({"normalizer": "mean"}, "'mean' is none of"),
        ({"readout": "both"}, "'both' is none of"),
        ({"title": "two\nlines"}, "one line of printable text"),
        ({"name": "a b"}, "is no name"),
    ],
)
def test_choices_that_do_not_fit_are_refused(choices: dict[str, Any], said: str) -> None:
    draft = replace(Draft("mine"), **choices)
    assert not draft.fits()
    with pytest.raises(SpecError, match=said):
        draft.text()


def test_the_words_are_those_of_the_reader() -> None:
    assert set(NORMALIZERS) == set(get_args(NormalizerKind))
    assert set(READOUTS) == set(get_args(ReadoutKind))


def test_a_title_is_quoted_where_it_has_to_be() -> None:
    assert read_text(Draft("mine", title="a: b # c {").text()).title == "a: b # c {"
