"""Whatever text comes, it is a spec or it is refused: nothing else is raised, nothing hangs, nothing is evaluated."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from recgen.errors import SpecError
from recgen.spec import read, read_text
from recgen.spec.expression import Scope, read_expression
from recgen.spec.model import HEAD, SIZES, symbol

CALM = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
SECONDS = 2.0

# Fragments of YAML, one of each kind of thing that its grammar has, beside whole entries of a spec.
_YAML = """{ } [ ] - ? : , ' " # ~ | >- &a *a !!str 1e-6 off decay: name: type: gated log: logsigmoid(g) %YAML"""
_ENTRIES = ["name: mine", "inputs: {g: B T H}", "params: {w: {axes: H, init: 0}}", "family: scalar_gate", "---", "..."]
_SPACES = [" ", "  ", "\n", "\n  ", "\t", "\r", "\u2028", "\ufeff", ""]
PIECES = st.tuples(st.sampled_from(_YAML.split() + _ENTRIES), st.sampled_from(_SPACES)).map("".join)

_LEAVES = st.sampled_from(["g", "w", "h", "K", "S", "1", "0", "2.5", "1e-6", "1e300", "x"])
_FUNCTIONS = st.sampled_from(["exp", "log", "sqrt", "tanh", "softplus", "elu", "-", "abs"])


def _nest(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two = st.tuples(inner, inner)
    return st.one_of(
        st.tuples(two, st.sampled_from("+-*/")).map(lambda t: f"({t[0][0]} {t[1]} {t[0][1]})"),
        st.tuples(inner, st.sampled_from(["2", "-1", "0.5", "h", "64"])).map(lambda t: f"({t[0]}) ** {t[1]}"),
        st.tuples(_FUNCTIONS, inner).map("{0[0]}({0[1]})".format),
        two.map("max({0[0]}, {0[1]})".format),
        two.map("mod({0[0]}, {0[1]})".format),
        st.tuples(two, inner).map("where({0[0][0]} < {0[1]}, {0[0][1]}, 1)".format),
    )


EXPRESSIONS = st.recursive(_LEAVES, _nest, max_leaves=12)


def reads_or_refuses(action: Callable[[], object]) -> None:
    start = time.process_time()
    try:
        action()
    except SpecError as error:
        assert error.problems
        for problem in error.problems:
            assert problem.reason and problem.location.line >= 1 and problem.location.column >= 1
            assert str(problem)
    assert time.process_time() - start < SECONDS


@CALM
@given(st.text(max_size=300))
@example("name: \ud800")
def test_any_text(text: str) -> None:
    reads_or_refuses(lambda: read_text(text))


@CALM
@given(st.lists(PIECES, max_size=30).map("".join))
def test_any_mixture_of_yaml(text: str) -> None:
    reads_or_refuses(lambda: read_text(text))


@CALM
@given(data=st.binary(max_size=300))
@example(data=b"\xff\xfe\x00")
def test_any_bytes(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = Path(tmp_path_factory.getbasetemp()) / "any.yaml"
    path.write_bytes(data)
    reads_or_refuses(lambda: read(path))


@CALM
@given(st.text(alphabet="gwxhKS0123456789.e+-*/()<>=, \nexplogminax_'\"", max_size=80))
def test_any_text_in_an_expression(text: str) -> None:
    quoted = text.replace("'", "''")
    reads_or_refuses(lambda: read_text(f"name: mine\ninputs: {{g: B T H}}\ndecay: {{type: gated, log: '{quoted}'}}\n"))


@CALM
@given(EXPRESSIONS)
def test_any_expression(text: str) -> None:
    declared = "name: mine\ninputs: {g: B T H}\nparams: {w: {axes: H, init: 0}}\n"
    reads_or_refuses(lambda: read_text(f"{declared}decay: {{type: gated, log: '{text}'}}\n"))


@CALM
@given(EXPRESSIONS)
def test_the_normal_spelling_is_read_as_the_same_tree(text: str) -> None:
    scope = Scope("the test", {"g": symbol("g"), "w": symbol("w"), "h": HEAD, "K": SIZES["K"], "x": symbol("x")})
    first = read_expression(text, scope)
    if not isinstance(first, list):
        second = read_expression(first.text, scope)
        assert not isinstance(second, list)
        assert (second.text, second.tree) == (first.text, first.tree)


@pytest.mark.parametrize(
    "text",
    [
        *(character * 30000 for character in "[{'\"#:!%\n-?|>&*,"),
        *(f"{character}\n" * 16000 for character in "[{'\"#:!%-?|>&*,"),
        *(f"{character} " * 1000 for character in "[{'\"#:!%-?|>&*,"),
        "- " * 16000,
        "? " * 16000,
        "a: " * 10000,
        "{a: " * 8000,
        "".join(f"k{number}: 1\n" for number in range(3000)),
        "a: [" + "1," * 15000,
        "\n".join(f"a{number}: &a{number} [*a{number - 1}, *a{number - 1}]" for number in range(1, 100)),
    ],
    ids=lambda text: repr(text[:6]),
)
def test_large_documents_are_refused_in_time(text: str) -> None:
    reads_or_refuses(lambda: read_text(text))
    with pytest.raises(SpecError):
        read_text(text)
