"""Which keys a spec has, and what kind of value each takes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from recgen.spec.names import LAYER_NAMES
from tests.spec.refusals import only, operator, place, problems


@pytest.mark.parametrize(
    ("text", "where", "reason", "fix"),
    [
        ("scale: 1\n", (1, 1), "the key 'name' is missing", "add `name: my_gla`"),
        ("name: a\nscle: 1\n", (2, 1), "there is no key 'scle' here", "did you mean scale?"),
        ("name: a\nSCALE: 1\n", (2, 1), "there is no key 'SCALE' here", "did you mean scale?"),
        ("name: a\neps: 1e-6\n", (2, 1), "there is no key 'eps' here", "it belongs to normalizer"),
        ("name: a\ndecay: {tpye: none}\n", (2, 9), "there is no key 'tpye' here", "did you mean type?"),
        ("name: a\ndecay: gated\n", (2, 8), "a mapping is needed here, this is one value", "type, per, log"),
        ("name: a\ndecay: [gated]\n", (2, 8), "a mapping is needed here, this is a list", "type, per, log"),
        ("name: a\ninputs: g\n", (2, 9), "a mapping is needed here", "`name: value` lines"),
        ("name: a\nparams: {w: H}\n", (2, 13), "a mapping is needed here", "axes, init or buffer"),
        ("name: a\nparams: {w: {init: 0}}\n", (2, 10), "the key 'axes' is missing", "add `axes: H`"),
        ("name: a\nparams: {w: {axes: H, int: 0}}\n", (2, 23), "there is no key 'int' here", "did you mean init?"),
        ("name: a\nparams: {w: {axes: H, init: max(0, 1)}}\n", (2, 36), "there is no key '1)'", "in quotes"),
        ("name: a\nnormalizer: sun\n", (2, 13), "'sun' is none of", "did you mean sum?"),
        ("name: a\nnormalizer: {eps: 1}\n", (2, 1), "the key 'kind' is missing", "add `kind: sum`"),
        ("name: a\nnormalizer: {kind: max_abs, eps: 1}\n", (2, 34), "the normalizer max_abs has no eps", "remove it"),
        ("name: a\nreadout: inclusiv\n", (2, 10), "'inclusiv' is none of", "did you mean inclusive?"),
        ("name: a\nstate: tensor\n", (2, 8), "'tensor' is none of", "write matrix or vector"),
        ("name: {a: b}\n", (1, 1), "this is a mapping", "a single value"),
        ("name: [a]\n", (1, 7), "this is a list", "a single value"),
        ("name: a\nbounds: [0]\n", (2, 9), "bounds are two numbers", "[-1, 0]"),
        ("name: a\nbounds: -1\n", (2, 9), "bounds are two numbers", "[-1, 0]"),
        ("name: a\nbounds: [0, -1]\n", (2, 9), "the lower bound is above", "[-1, 0]"),
        ("name: a\nbounds: [a, 0]\n", (2, 9), "a number is needed here", "such as"),
    ],
)
def test_a_wrong_shape_is_refused(text: str, where: tuple[int, int], reason: str, fix: str) -> None:
    problem = only(text)
    assert reason in problem.reason
    assert fix in problem.fix
    assert place(problem) == where


@pytest.mark.parametrize(
    ("name", "reason", "fix"),
    [
        ("my-op", "is no name", "my_op"),
        ("2nd", "is no name", "nd"),
        ("класс", "is no name", "my_name"),
        ("class", "a keyword of Python", "class_in"),
        ("__init__", "kept for the emitted module", "init"),
        ("torch", "would hide the module torch", "torch_in"),
        ("operator", "would hide the module operator", "operator_in"),
        ("a" * 41, "longer than 40", "shorter"),
        ("../evil", "is no name", "evil"),
        ("''", "the name is empty", "write a name"),
    ],
)
def test_an_operators_name_is_an_identifier_that_hides_nothing(name: str, reason: str, fix: str) -> None:
    problem = only(f"name: {name}\n")
    assert place(problem) == (1, 7)
    assert reason in problem.reason
    assert fix in problem.fix


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("lambda", "a keyword of Python"),
        ("None", "a keyword of Python"),
        ("_g", "kept for the emitted module"),
        ("__class__", "kept for the emitted module"),
        ("h", "the head index"),
        ("K", "the key width"),
        ("T", "the number of tokens"),
        ("scale", "already an argument"),
        ("initial_state", "already an argument"),
        ("backend", "already an argument"),
        ("state", "already an argument"),
        ("exp", "a function of the expression language"),
        ("uniform", "a function of the expression language"),
        ("torch", "has a meaning of its own in the emitted module"),
        ("INPUTS", "has a meaning of its own in the emitted module"),
        ("chunk", "has a meaning of its own in the emitted module"),
        ("range", "would hide Python's own range"),
        ("g.h", "is no name"),
        ("γ", "is no name"),
    ],
)
def test_an_input_may_not_take_a_name_that_means_something(name: str, reason: str) -> None:
    found = problems(f"name: mine\ninputs:\n  {name}: B T H\n")[0]
    assert place(found) == (3, 3)
    assert reason in found.reason
    assert found.fix.startswith("call it ")


@pytest.mark.parametrize(
    ("declared", "where", "reason", "fix"),
    [
        ("inputs: {g: B T H C}", (2, 13), "'C' is no axis", "the axes are B batch"),
        ("inputs: {g: BTH}", (2, 13), "'BTH' is no axis", "write B T H"),
        ("inputs: {g: B T h}", (2, 13), "'h' is no axis", "write H"),
        ("inputs: {g: H}", (2, 13), "an input has one value per token", "B T H, B T H K"),
        ("inputs: {g: B H T}", (2, 13), "an input has one value per token", "B T H, B T H K"),
        ("inputs: {g: B T H V K}", (2, 13), "an input has one value per token", "B T H, B T H K"),
        ("inputs: {g: [B, T, H]}", (2, 13), "axes are one text", "spaces between"),
        ("params: {w: {axes: T H, init: 0}}", (2, 20), "a parameter has no T axis", "under inputs"),
        ("params: {w: {axes: K H, init: 0}}", (2, 20), "in the order H M K V D", "write H K"),
        ("params: {w: {axes: '', init: 0}}", (2, 20), "at least one axis", "axes: H"),
        ("params: {w: {axes: H}}", (2, 10), "w has no initial value", "init: 0"),
        ("params: {w: {axes: K, init: h}}", (2, 29), "w has no head axis", "add H"),
        ("params: {w: {axes: H, init: g}}", (2, 29), "g is not declared", "known here"),
        ("params: {w: {axes: H, init: 0, buffer: on}}", (2, 40), "true or false is needed", "write true"),
        ("params: {q: {axes: H, init: 0}}", (2, 10), "q is the query", "B T H K"),
        ("inputs: {q: B T H}", (2, 13), "q is the query", "B T H K"),
        ("inputs: {v: B T H K}", (2, 13), "v is the value", "B T H V"),
    ],
)
def test_axes_and_initial_values_are_checked(declared: str, where: tuple[int, int], reason: str, fix: str) -> None:
    found = problems(f"name: mine\n{declared}\n")[0]
    assert reason in found.reason
    assert fix in found.fix
    assert place(found) == where


def test_one_name_is_declared_once() -> None:
    found = problems("name: mine\ninputs: {g: B T H}\nparams: {g: {axes: H, init: 0}}\n")[0]
    assert place(found) == (3, 10)
    assert "g is declared as an input" in found.reason


@pytest.mark.parametrize("declared", ["inputs: {g: B T H}", "params: {g: {axes: H, init: 0}}"])
def test_what_nothing_depends_on_is_refused(declared: str) -> None:
    found = only(f"name: mine\n{declared}\n")
    assert place(found) == (2, 10)
    assert found.reason == "nothing depends on g"


@pytest.mark.parametrize("title", ["it's \"quoted\" \\ and {{ braces }} '''", 'a """ b', "naïve 注意", "%s {0}"])
def test_a_title_may_hold_any_printable_line(title: str) -> None:
    quoted = title.replace("'", "''")
    assert operator(f"title: '{quoted}'").title == title


@pytest.mark.parametrize(
    "title", ['"a\\nb"', "|\n  a\n  b\n", '"a\\x07b"', '"a\\u202eb"', '"a\\0b"', '"a\\u2028b"', "a" * 301]
)
def test_a_title_is_one_printable_line(title: str) -> None:
    found = only(f"name: mine\ntitle: {title}\n")
    assert place(found) == (2, 8)


def test_short_forms_mean_the_long_ones() -> None:
    short = operator("normalizer: sum\nfeature_map: relu\nkey_weight: 2\nreadout: inclusive\n")
    full = operator(
        "normalizer: {kind: sum, eps: 1e-6}\nfeature_map: {query: relu(x), key: relu(x)}\n"
        "key_weight: {value: 2}\nreadout: {kind: inclusive}\n"
    )
    assert short == full
    assert short.digest == full.digest


@pytest.mark.parametrize("name", ["z_end", "q_ptr", "k_rows", "forward", "training", "position", "CHUNK"])
def test_names_that_the_emitted_module_needs_are_refused(name: str) -> None:
    declared = f"params: {{{name}: {{axes: H, init: 0}}}}\ndecay: {{type: learned, log: -exp({name})}}\n"
    found = problems(f"name: a\n{declared}")
    assert any(p.text == name for p in found), found


def test_the_attributes_of_a_layer_are_known() -> None:
    """In a process of its own: some packages give all layers more attributes when they are imported."""
    program = "import torch; print(*(name for name in dir(torch.nn.Module()) if not name.startswith('_')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    public = set(done.stdout.split())
    assert "forward" in public
    assert public <= LAYER_NAMES
