"""Every emitted statement is beside the equation that it implements, or named as what it does instead."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from recgen.algebra.derive import derive
from recgen.emit.trace import EQUATION, OTHER, Line, trace
from recgen.explain.lines import UnknownFunction, listing
from recgen.plan.passes import plan
from recgen.resources import catalogue
from recgen.spec import read

GENERATED = Path(__file__).parents[2] / "generated"
NAMES = ["gla", "simple_gla", "mlstm", "linear_attention_global", "full_gate", "rwkv4"]
INSTEAD = {"addressing", "loop", "condition", "load", "store", "start", "result", "barrier"}
every_operator = pytest.mark.parametrize("name", NAMES)


@cache
def traced(name: str) -> Mapping[str, tuple[Line, ...]]:
    found = derive(read(catalogue()[name]), prove=False)
    return trace(found, plan(found))


def lines(name: str) -> list[tuple[str, Line]]:
    return [(function, line) for function, found in traced(name).items() for line in found]


@every_operator
def test_every_statement_has_an_equation_or_says_what_it_does(name: str) -> None:
    for function, line in lines(name):
        assert line.kind != OTHER, f"{function}: {line.code}"
        assert line.kind in INSTEAD | {EQUATION} and bool(line.equation) == (line.kind == EQUATION)


@every_operator
def test_every_kernel_is_traced(name: str) -> None:
    text = (GENERATED / f"{name}.py").read_text(encoding="utf-8")
    kernels = set(re.findall(r"^@_kernel\ndef (\w+)", text, re.MULTILINE)) - {"_add_up"}
    assert kernels <= set(traced(name))


@every_operator
def test_the_lines_are_those_of_the_module(name: str) -> None:
    """As they stand in the committed file, without what a comment says."""
    source = (GENERATED / f"{name}.py").read_text(encoding="utf-8").splitlines()
    for function, line in lines(name):
        for n, code in enumerate(line.code):
            assert any(code in row for row in source[line.number - 1 + n : line.number + n + 2]), (function, line)


@every_operator
def test_the_equation_is_of_the_variable_that_the_line_computes(name: str) -> None:
    """Its left side has the name that is assigned, but for what tells two variables of one value apart."""
    checked = 0
    for function, line in lines(name):
        target, left = assigned(line), re.match(r"([\wℓ]+)(?:\[[^]]*\])? [=←]", line.equation)
        if line.kind != EQUATION or target is None or left is None or function == "_hand_over":
            continue
        checked += 1
        assert plain(target) == plain(left[1].replace("ℓ", "log_decay")), (function, line)
    assert checked > 30


def plain(name: str) -> str:
    """The name without what tells rows, totals and the chunk before apart, and without a number."""
    name = re.sub(r"_(before|rows|token|chunks|states)$", "", name)
    return re.sub(r"_\d+$", "", name).removeprefix("log_total").removeprefix("total")


def assigned(line: Line) -> str | None:
    statement = "\n".join(code.strip() for code in line.code)
    try:
        (parsed,) = ast.parse(statement).body
    except (SyntaxError, ValueError):
        return None
    target = parsed.targets[0] if isinstance(parsed, ast.Assign) else None  # what is added to may be a part of a sum
    return target.id if isinstance(target, ast.Name) else None


@every_operator
def test_what_is_stored_was_computed_before_or_has_its_equation(name: str) -> None:
    """A store that computes what it stores is no mere store."""
    for function, line in lines(name):
        statement = "".join(code.strip() for code in line.code)
        if line.kind != "store" or not statement.startswith(("tl.store(", "_store(")):
            continue
        call = ast.parse(statement).body[0].value
        (value,) = call.args[1:2] if statement.startswith("tl.") else call.args[-1:]
        while isinstance(value, ast.Call):  # a conversion
            assert isinstance(value.func, ast.Attribute) and value.func.attr == "to", (function, statement)
            value = value.func.value
        assert isinstance(value, ast.Name | ast.Constant), (function, statement)


def test_a_line_says_what_the_algebra_says() -> None:
    found = {line.code[0].strip(): line.equation for line in traced("gla")["_chunk_forward"]}
    assert found["total = tl.sum(log_decay, 0)"] == "total[m] = Σ_t ℓ[t,m]"
    assert found["similarity = _dot_nt(query_weighted, key_weighted, DOT, PRECISION)"] == (
        "similarity[s,t,i] = Σ_m query_weighted[s,t,m] key_weighted[s,i,m]"
    )
    torch_lines = {line.code[0].strip(): line.equation for line in traced("gla")["_segment_forward"]}
    assert torch_lines["query = _rows(scale * q, size)"] == "query[t,m] = scale q[t,m], 0 after the last token"
    step = {line.code[0].strip(): line.equation for line in traced("gla")["_token_step"]}
    assert step["o = (S * query[..., :, None]).sum(-2)"] == "o[t,c] = Σ_m query[t,m] S[m,c]"


def test_the_listing_has_equations_beside_the_code() -> None:
    text = listing(traced("gla"), "_chunk_forward")
    assert re.search(r"^ *\d+ +total = tl\.sum\(log_decay, 0\) +total\[m\] = Σ_t ℓ\[t,m\]$", text, re.MULTILINE)
    assert "· addressing" in text and "· load" in text and "· store" in text and "#" not in text
    assert listing(traced("gla"), "chunk_forward") == text, "the leading underscore may be left out"


def test_an_unknown_function_is_refused_with_those_that_there_are() -> None:
    said = r"no function called '_chunk_forwrd'.*Did you mean _chunk_forward\?.*_step_"
    with pytest.raises(UnknownFunction, match=said):
        listing(traced("gla"), "_chunk_forwrd")
