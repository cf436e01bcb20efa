"""`where` stands wherever an expression does: specs that choose are derived and proven, in every role."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import sympy

from recgen.algebra.derive import derive
from recgen.algebra.wide_values import vector_value
from recgen.spec import read_text

SPECS = (
    "feature_map: softmax(where(x > 0, x, 0))",
    "feature_map: concat(where(x > 0, x, 0), x)",
    "feature_map: outer(where(x > 0, x, 1), x)",
    "feature_map: where(sum(x) > 0, x, -x)",
    "feature_map: where(x > sum(x), softmax(x), l2norm(x))",
    "feature_map: where(x > 0, sum(x), where(x < -1, 1, x))",
    "params: {W: {axes: H M K, init: 0}}\nfeature_map: where(matmul(W, x) > 0, matmul(W, x), 0.1 * matmul(W, x))",
    "key: where(k > 0, k, k * 0.1)\nfeature_map: concat(1, outer(x, x))",
    "query: where(q > 0, q, -q)\nrotation: where(i > 2, 0.1, 0.5)",
    "params: {w: {axes: H K, init: 1}}\nquery: complex(where(q > 0, q, 0), k)\n"
    "decay: {type: learned, per: key, log: 'complex(where(w > 0, -w, w), where(w > 1, w, 2 * w))'}",
    "causal: false\nfeature_map: softmax(where(x > 0, x, 0))\nkey_weight: where(k > 0, k, 0.1)\nnormalizer: abs_sum",
    "inputs: {g: B T H, i: B T H}\ndecay: {type: gated, log: 'where(g > 0, -g, 3 * g)'}\nnormalizer: sum\n"
    "key_weight: {log: 'where(i > 0, i, 3 * i)'}\nreadout: {gate: 'where(v > 0, v, 0.1 * v)'}",
)


@pytest.mark.parametrize("body", SPECS)
def test_a_spec_that_chooses_is_proven(body: str) -> None:
    assert derive(read_text(f"name: chooses\n{body}\n")).proof.ok


def test_a_choice_between_vectors_is_made_for_each_element() -> None:
    x, y = sympy.symbols("x y", real=True)
    at = {x: np.array([mpmath.mpf(-1), mpmath.mpf(2)], dtype=object), y: mpmath.mpf(7)}
    found = vector_value(sympy.Piecewise((x, x > 0), (y, True)), at)
    assert list(found) == [7, 2]
