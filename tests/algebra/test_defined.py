"""Where expressions have no value: at every size, at some sizes, and on regions of the inputs."""

from __future__ import annotations

import pytest
import sympy

from recgen.algebra.defined import doubtful, fails_everywhere, map_without_value, proper_sizes, without_value
from recgen.algebra.derive import derive
from recgen.algebra.widths import Softmax, Total
from recgen.spec import read_text
from recgen.spec.model import FEATURE, HEAD, PAIR, SIZES, symbol

K, H, h, i, g = SIZES["K"], SIZES["H"], HEAD, PAIR, symbol("g")


@pytest.mark.parametrize(
    "tree",
    [
        K ** sympy.Rational(-1, 2),
        sympy.log(1 + h),
        sympy.log(1 - 2 ** (-5 - h)),
        g / K,
        10000 ** (-2 * i / K),
        1 / (1 + g**2),
        K**3,
        sympy.Mod(K, 2),
    ],
)
def test_what_no_size_can_spoil_is_not_doubted(tree: sympy.Expr) -> None:
    assert doubtful(tree) == [] and fails_everywhere(tree) == "" and proper_sizes([tree]) == {}


@pytest.mark.parametrize("part", [1 / (K - 4), sympy.log(K - 16), sympy.sqrt(4 - K), sympy.exp(K**3), K**K])
def test_what_some_sizes_spoil_is_found(part: sympy.Expr) -> None:
    assert doubtful(g * part + 1) == [part]
    assert fails_everywhere(part) == ""
    assert proper_sizes([part])


@pytest.mark.parametrize(
    ("tree", "where"),
    [
        (sympy.log(h), "at h = 0"),
        (1 / (h - 1), "at h = 1"),
        (1 / i, "at i = 0"),
        (sympy.log(-K), "at any size"),
        (sympy.sqrt(i - 4), "at i = 0"),
    ],
)
def test_what_every_size_spoils_is_told(tree: sympy.Expr, where: str) -> None:
    assert fails_everywhere(tree).endswith(f"has no finite value {where}")


def test_a_region_without_value_is_found_and_a_point_is_not() -> None:
    relu = sympy.Max(g, 0)
    assert without_value(sympy.log(relu)) and without_value(g / relu)
    assert without_value(1 / g) == ""
    widths = {FEATURE: (K,)}
    positive = sympy.Max(FEATURE, 0)
    assert map_without_value(FEATURE / Total(positive), FEATURE, widths) == "the elements of x are negative"
    assert map_without_value(FEATURE / Total(FEATURE), FEATURE, widths) == ""
    assert map_without_value(sympy.log(Softmax(FEATURE)), FEATURE, widths) == ""


@pytest.mark.parametrize(
    "body",
    ["rotation: sqrt(4 - K)", "rotation: 1 / (K - 4)", "query: q * log(K - 8)", "feature_map: softmax(x / (K - 4))"],
)
def test_what_some_sizes_spoil_is_proven_at_others(body: str) -> None:
    assert derive(read_text(f"name: some\n{body}\n")).proof.ok
