"""Feature maps over the whole width: how wide they are, what they are worth, and that their proof can fail."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy

from recgen.algebra.adjoint import adjoint
from recgen.algebra.chunkwise import chunk_program
from recgen.algebra.derive import derive
from recgen.algebra.operations import Concat, Flatten, Slice
from recgen.algebra.proof import ProofError, prove
from recgen.algebra.statement import recurrence
from recgen.algebra.widths import Matmul, Outer, Softmax, Total, matrix_axes, width
from recgen.errors import SpecError
from recgen.spec import read_text
from recgen.spec.model import SIZES

X, W = sympy.symbols("x W", real=True)
K, M = SIZES["K"], SIZES["M"]
WIDTHS = {X: (K,), W: (M, K)}
MAPS = {
    "softmax": "softmax(x)",
    "l2norm": "l2norm(x)",
    "taylor": "concat(1, x, outer(x, x) / 2)",
    "random": "exp(matmul(W, x) - sum(x ** 2) / 2)",
    "there_and_back": "matmul(W, matmul(W, x))",
    "hedgehog": "concat(softmax(matmul(U, x)), softmax(-matmul(U, x)))",
}
PARAMS = {
    "there_and_back": "{W: {axes: H K K, init: 0}}",
    "random": "{W: {axes: M K, init: 0}}",
    "hedgehog": "{U: {axes: H K K, init: 0}}",
}


def spec_of(name: str):
    params = f"params: {PARAMS[name]}\n" if name in PARAMS else ""
    return read_text(f"name: wide\n{params}feature_map: {MAPS[name]}\nnormalizer: sum")


@pytest.mark.parametrize(
    ("expr", "wide"),
    [
        (X, K),
        (Softmax(X), K),
        (Total(X), None),
        (X / Total(X), K),
        (Matmul(W, X), M),
        (Outer(X, X), K**2),
        (sympy.exp(Matmul(W, X)) * Total(X), M),
    ],
)
def test_width(expr: sympy.Expr, wide: sympy.Expr | None) -> None:
    assert width(expr, WIDTHS) == wide


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("matmul(W, x) + x", "meet"),
        ("matmul(x, x)", "takes a matrix"),
        ("sum(sum(x))", "needs features"),
        ("sum(x)", "one number"),
        ("sum(W * x) * x", "only matmul"),
        ("matmul(W, concat(1, x))", "has K + 1 features"),
    ],
)
def test_widths_that_do_not_fit_are_refused_where_they_stand(text: str, reason: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_text(f"name: wide\nparams: {{W: {{axes: M K, init: 0}}}}\nfeature_map: {text}")
    assert any(reason in p.reason and p.location.line == 3 for p in caught.value.problems), caught.value


@pytest.mark.parametrize("name", MAPS)
def test_wide_maps_are_proven(name: str) -> None:
    assert derive(spec_of(name)).proof.ok


@pytest.mark.parametrize("name", ["softmax", "taylor", "hedgehog"])
def test_a_wrong_transpose_is_not_proven(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The adjoint of the wide part is compared with slopes of the expression that know no node."""
    rec = recurrence(spec_of(name))
    program = chunk_program(rec, "plain")
    right = adjoint(program)
    key = next(n for n in right.outputs if n in ("d_q", "d_k"))
    wrong = replace(right, outputs={**right.outputs, key: program.graph.neg(right.outputs[key])})
    with pytest.raises(ProofError, match=f"gradient {key}"):
        prove(rec, program, wrong)


def test_a_slice_takes_the_place_that_its_part_has() -> None:
    op = Concat(("", "k", "f"), (sympy.Integer(1), K, K**2), "a")
    assert [Slice(op, n).start for n in range(3)] == [0, 1, 1 + K]
    assert Flatten(("k", "e"), (K, K), "f").source == ("k", "e")


@pytest.mark.parametrize(
    ("axes", "summed", "out"), [("M K", 1, M), ("K M", 0, M), ("K V", 0, SIZES["V"]), ("K K", 0, K)]
)
def test_a_matrix_is_summed_over_the_axis_that_is_as_wide_as_its_argument(axes: str, summed: int, out) -> None:
    sizes = tuple(SIZES[a] for a in axes.split())
    assert matrix_axes(Matmul(W, X), {X: (K,), W: sizes}) == (summed, out)
