"""Initial values of parameters: the expression language, and one random draw."""

from __future__ import annotations

import pytest
import sympy

from recgen.errors import SpecError
from recgen.spec import read_text
from recgen.spec.initial import Draw, LogUniform, Normal, Uniform, is_random
from recgen.spec.model import HEAD, SIZES
from tests.spec.refusals import only, operator, place


def initial(expression: str, axes: str = "H") -> sympy.Expr:
    spec = operator(
        f'params: {{w: {{axes: {axes}, init: "{expression}"}}}}\ndecay: {{type: learned, per: '
        f"{'key' if 'K' in axes else 'head'}, log: -exp(w)}}\n"
    )
    init = spec.params[0].init
    assert init is not None
    return init.tree


def test_an_initial_value_may_vary_by_head_and_use_the_sizes() -> None:
    assert initial("log(1 + h) / H", "H K") == sympy.log(1 + HEAD) / SIZES["H"]
    assert initial("1 / K", "K") == 1 / SIZES["K"]


@pytest.mark.parametrize(
    ("text", "kind", "arguments"),
    [
        ("uniform(1, 16)", Uniform, (1, 16)),
        ("normal(0, 0.5)", Normal, (0, 0.5)),
        ("log(loguniform(1e-3, 0.1))", LogUniform, (1e-3, 0.1)),
    ],
)
def test_a_draw_is_an_application_of_its_class(text: str, kind: type[Draw], arguments: tuple[float, ...]) -> None:
    tree = initial(text)
    (draw,) = tree.atoms(Draw)
    assert isinstance(draw, kind)
    assert is_random(tree)
    assert tuple(map(float, draw.args)) == arguments


def test_a_fixed_value_is_not_random() -> None:
    assert not is_random(initial("log(h + 1)"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("uniform(1, 0)", "the first number must be below the second"),
        ("normal(0, -1)", "must not be negative"),
        ("loguniform(0, 1)", "0 < lo < hi"),
        ("uniform(0)", "uniform takes 2 arguments, 1 given"),
        ("uniform(0, 1) - uniform(0, 1)", "one expression draws one random number"),
        ("unifrom(0, 1)", "there is no function unifrom"),
        ("S", "S is the state of the recurrence"),
        ("g", "g is not declared"),
    ],
)
def test_what_is_no_initial_value(text: str, reason: str) -> None:
    problem = only(
        f"name: mine\nparams:\n  w:\n    init: {text}\n    axes: H\ndecay: {{type: learned, log: -exp(w)}}\n"
    )
    assert reason in problem.reason
    assert place(problem)[0] == 4


def test_only_an_initial_value_is_random() -> None:
    assert "only an `init` may do" in only("name: mine\nfeature_map: x + normal(0, 1)\n").reason


def test_the_index_of_a_key_channel_is_for_parameters_with_one() -> None:
    spec = read_text(
        "name: x\nparams: {w: {axes: H K, init: log(k + 1) - h}}\ndecay: {type: learned, per: key, log: -exp(w)}"
    )
    assert {s.name for s in spec.params[0].init.tree.free_symbols} == {"k", "h"}
    with pytest.raises(SpecError, match="k is the key channel index, and w has no key axis"):
        read_text("name: x\nparams: {w: {axes: H, init: log(k + 1)}}\ndecay: {type: learned, log: -exp(w)}")
