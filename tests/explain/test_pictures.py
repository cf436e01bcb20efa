"""The pictures show what the algebra says: weights of a mask, and every pair of tokens in one place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import recgen
from recgen.algebra.operations import Mask
from recgen.explain.pictures import chunk_picture, mask_picture, pair_kinds
from recgen.explain.sampled import masks
from tests.explain.conftest import Made

GENERATED = Path(__file__).parents[2] / "generated"
Operator = Callable[[str], Made]


def test_weights_are_products_of_the_decays_in_between(operator: Operator) -> None:
    found = masks(operator("retnet").found.recurrence, recgen.load_file(GENERATED / "retnet.py"))
    assert [mask.title for mask in found] == ["head h = 0", "head h = 1", "head h = 2"]
    for head, mask in enumerate(found):
        assert mask.weights[7, 2] == pytest.approx((1 - 2.0 ** (-5 - head)) ** 5)
        assert np.isnan(mask.weights[2, 7])


@pytest.mark.parametrize(
    ("name", "titles"),
    [
        ("linear_attention", "every head"),
        ("gla", "feature m = 1"),
        ("full_gate", "value channel c = 1"),
        ("hgrn", "channel c = 1"),
        ("mlstm", "head h = 1"),
        ("rwkv4", "channel c = 1"),
        ("s4d", "feature m = 0"),
    ],
)
def test_masks_are_those_of_what_the_decay_varies_with(name: str, titles: str, operator: Operator) -> None:
    found = masks(operator(name).found.recurrence, recgen.load_file(GENERATED / f"{name}.py"))
    assert any(titles in mask.title for mask in found)
    for mask in found:
        kept = mask.weights[np.tril_indices_from(mask.weights)]
        assert np.all((kept >= 0) & (kept <= 1)) and np.all(np.diag(mask.weights) == 1)
    assert len({mask.weights.tobytes() for mask in found}) == len(found)


@pytest.mark.parametrize("name", ["retnet", "gla", "rwkv6", "rwkv4", "full_gate"])
def test_every_pair_has_one_place(name: str, operator: Operator) -> None:
    found, plan = operator(name)
    kinds = pair_kinds(found.recurrence, plan.program)
    t, i = np.indices(kinds.cells.shape)
    assert np.array_equal(kinds.cells >= 0, i <= t)
    assert set(np.unique(kinds.cells)) - {-1} == set(range(len(kinds.words)))
    assert np.all(kinds.cells[(t // 8) != (i // 8)] <= 0), "tokens of two chunks meet in the state alone"


def test_a_tree_has_a_place_for_every_level(operator: Operator) -> None:
    found, plan = operator("gla")
    words = pair_kinds(found.recurrence, plan.program).words
    levels = [f"inside a chunk: a product of the halves of {n} rows" for n in (2, 4, 8)]
    assert [w for w in words if "halves" in w] == levels


def test_pairs_are_where_the_program_masks_them(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    """With another mask in the program there is another picture: nothing of it is drawn by heart."""
    found, plan = operator("retnet")
    (mask,) = {n for n in plan.program.nodes() if isinstance(n.op, Mask)}
    monkeypatch.setattr(mask, "op", Mask("strict"))
    kinds = pair_kinds(found.recurrence, plan.program)
    assert kinds.words[kinds.cells[1, 0]] == "inside a chunk: a product of rows"
    assert kinds.words[kinds.cells[1, 1]] == "the token itself"


def test_where_all_is_summed_nothing_is_apart(operator: Operator) -> None:
    found, plan = operator("linear_attention_global")
    kinds = pair_kinds(found.recurrence, plan.program)
    assert np.all(kinds.cells == 0) and "sum" in kinds.words[0]


def test_pictures_say_what_their_axes_are(operator: Operator) -> None:
    found, plan = operator("retnet")
    picture = chunk_picture(pair_kinds(found.recurrence, plan.program), "retnet")
    for words in ("token i, which writes (position)", "token t, which reads (position)", "through the state at the"):
        assert words in picture
    (mask, *_) = masks(found.recurrence, recgen.load_file(GENERATED / "retnet.py"))
    for words in ("token t (position)", "token i (position)", "weight M[t, i] (no unit)", "head h = 0"):
        assert words in mask_picture(mask, "retnet")
