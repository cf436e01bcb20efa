"""The recurrence unrolled token by token: numbers that can be checked by hand, and gradients by its tape."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from recgen.algebra.operations import Leaf
from recgen.algebra.statement import recurrence
from recgen.algebra.tokens import Draw, Index
from recgen.algebra.unrolled import Taped, Tracked, Unrolled, gradients
from recgen.spec import read_text
from tests.algebra.floats import Floats


class Ones(Draw):
    """Every input is 1, every state starts at 0."""

    def _number(self, op: Leaf, index: Index) -> mpmath.mpf:
        return mpmath.mpf(0 if op.kind == "carry" else 1)


def unrolled(decay: str, more: str = "") -> Unrolled:
    rec = recurrence(read_text(f"name: x\ndecay: {{type: fixed, value: {decay}}}\n{more}"))
    return Unrolled(rec, Ones(0, {"m": 1, "v": 1}), Floats(), 3)


@pytest.mark.parametrize(("decay", "outputs"), [("0.9", [1, 1.9, 2.71]), ("0.5", [1, 1.5, 1.75]), ("1", [1, 2, 3])])
def test_ones_give_the_partial_sums_of_the_decays_powers(decay: str, outputs: list[float]) -> None:
    found = unrolled(decay)
    assert [x.value for x in found.outputs[:, 0]] == pytest.approx(outputs)
    assert found.states["S"][0, 0].value == pytest.approx(outputs[-1])


def test_normalized_ones_stay_ones() -> None:
    found = unrolled("0.9", "normalizer: {kind: sum, eps: 1e-6}")
    assert [x.value for x in found.outputs[:, 0]] == pytest.approx([1, 1, 1], abs=1e-5)


def test_the_gradient_of_the_last_output_decays_into_the_past() -> None:
    found = unrolled("0.9")
    seed = np.array([[0.0], [0.0], [1.0]], dtype=object)
    inputs, initial = found.gradients(seed, {"S": np.array([[0.0]], dtype=object)})
    assert list(inputs["v"][:, 0]) == pytest.approx([0.81, 0.9, 1])
    assert list(inputs["q"][:, 0]) == pytest.approx([0, 0, 2.71])
    assert initial["S"][0, 0] == pytest.approx(0.729)


class Counted(Draw):
    """Every input is the number of its token, from 1."""

    def _number(self, op: Leaf, index: Index) -> mpmath.mpf:
        return mpmath.mpf(index[0] + 1 if index else 1)


def test_without_causality_every_token_reads_the_sum_over_all() -> None:
    rec = recurrence(read_text("name: x\ncausal: false"))
    found = Unrolled(rec, Counted(0, {"m": 1, "v": 1}), Floats(), 3)
    assert [x.value for x in found.outputs[:, 0]] == pytest.approx([14, 28, 42])  # t (1 + 4 + 9)
    assert found.states == found.initial == {}
    inputs, initial = found.gradients(np.array([[1.0], [0.0], [0.0]], dtype=object), {})
    assert list(inputs["q"][:, 0]) == pytest.approx([14, 0, 0])
    assert list(inputs["k"][:, 0]) == list(inputs["v"][:, 0]) == pytest.approx([1, 2, 3])
    assert initial == {}


def test_the_tape_differentiates_sums_products_and_quotients() -> None:
    tape = Taped(Floats())
    x, y = Tracked(2.0), Tracked(5.0)
    z = x * y + tape.reciprocal(x + y) * x * x + 3
    slopes = gradients([(z, 1.0)])
    assert z.value == pytest.approx(10 + 4 / 7 + 3)
    assert slopes[id(x)] == pytest.approx(5 + (2 * 2 * 7 - 4) / 49)
    assert slopes[id(y)] == pytest.approx(2 - 4 / 49)
