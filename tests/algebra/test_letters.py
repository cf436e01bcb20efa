"""However a feature map is nested, its widths find letters, and matrices keep the order in which they are stored."""

from __future__ import annotations

import pytest

from recgen.algebra.derive import derive
from recgen.errors import SpecError
from recgen.spec import read_text

MATRICES = "params: {W: {axes: H K K, init: 0}, P: {axes: H M K, init: 0}, R: {axes: H K V, init: 0}}\n"
MAPS = (
    "outer(outer(x, x), x)",
    "outer(x, outer(x, x))",
    "outer(outer(x, x), outer(x, x))",
    "concat(outer(outer(x, x), x), x)",
    "matmul(W, matmul(W, matmul(W, matmul(W, x))))",
    "matmul(P, x) * exp(-matmul(P, matmul(W, x)))",
    "concat(matmul(R, matmul(W, x)), matmul(R, x), matmul(W, matmul(W, x)))",
)


def spec_of(feature_map: str):
    params = MATRICES.splitlines()[0][len("params: {") : -1].split("}, ")
    used = [p if p.endswith("}") else f"{p}}}" for p in params if f"({p[0]}," in feature_map]
    return read_text(
        f"name: nested\nparams: {{{', '.join(used)}}}\nfeature_map: {feature_map}\n"
        if used
        else f"name: nested\nfeature_map: {feature_map}\n",
        "nested.yaml",
    )


@pytest.mark.parametrize("feature_map", MAPS)
def test_a_nested_map_is_proven(feature_map: str) -> None:
    assert derive(spec_of(feature_map)).proof.ok


def test_a_map_of_too_many_functions_is_refused_at_its_place() -> None:
    nested = "x"
    for _ in range(13):
        nested = f"softmax({nested})"
    with pytest.raises(SpecError, match=r"nested.yaml:2:14: this feature map has 13 functions of the whole width"):
        spec_of(nested)
    assert derive(spec_of(nested[len("softmax(") : -1]), prove=False)
