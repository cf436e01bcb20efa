"""The license of a spec: a comment at the top of what is generated, and never more than a comment."""

from __future__ import annotations

import ast
import tokenize
from io import BytesIO

import pytest

from recgen.emit.license import license_lines
from recgen.emit.render import environment
from recgen.spec import Spec, SpecError, read_text

TEXT = 'Copyright 2026 A. N. Other\n  All rights \'reserved\' """ {{ name }} \\'


def test_an_identifier_becomes_the_tag_that_tools_look_for() -> None:
    assert license_lines("apache-2.0 OR mit") == ["SPDX-License-Identifier: Apache-2.0 OR MIT"]
    assert license_lines("") == []
    assert license_lines("Ask me\n  first") == ["Ask me", "  first"]


def test_it_is_part_of_what_a_spec_says() -> None:
    spec = read_text("name: a\nlicense: |\n  Ask me\n    first  \n")
    assert spec.license == "Ask me\n  first" and spec.as_dict()["license"] == spec.license
    assert Spec(spec.as_dict()) == spec
    assert spec.digest != read_text("name: a\n").digest


@pytest.mark.parametrize(
    "text",
    [
        "one\x0cimport os",
        "one\x85import os",
        "one\u2028import os",
        "one\rimport os",
        "one\x00",
        "one\n\x1b[2J",
        "-*- coding: latin-1 -*-",
        "vim: set fileencoding=utf-7 :",
        "fmt: off",
        "ruff: noqa",
        "type: ignore",
        "/// script\ndependencies = ['evil']\n///",
        "one\n# fmt: off",
        "a\n" * 100,
        "a" * 1000,
    ],
)
def test_what_would_be_more_than_a_comment_is_refused(text: str) -> None:
    with pytest.raises(SpecError) as info:
        Spec(name="a", license=text)
    assert info.value.problems[0].location.line == 2


def test_nothing_in_it_leaves_the_comment() -> None:
    """Neither the docstring's end nor the template's brackets mean anything there."""
    lines = license_lines(Spec(name="a", license=TEXT).license)
    template = environment().from_string('{% for line in license %}\n# {{ line }}\n{% endfor %}\n"""doc"""\n')
    text = template.render(license=lines)
    assert ast.get_docstring(ast.parse(text)) == "doc"
    tokens = [t.string for t in tokenize.tokenize(BytesIO(text.encode()).readline) if t.type == tokenize.COMMENT]
    assert tokens == [f"# {line}" for line in TEXT.split("\n")]


@pytest.mark.parametrize(
    ("written", "fix"),
    [
        ("|\n  # Copyright me\n  # and you", "leave out the #"),
        ("'# fmt: off'", "write it in other words"),
        ("42", "such as MIT"),
        ("'42'", "such as MIT"),
        ("true", "such as MIT"),
    ],
)
def test_what_to_write_instead(written: str, fix: str) -> None:
    with pytest.raises(SpecError) as info:
        read_text(f"name: a\nlicense: {written}\n")
    assert fix in info.value.problems[0].fix
