"""YAML means what a reader expects, or is refused with a place, a reason and a fix."""

from __future__ import annotations

import pytest

from recgen.errors import SpecError
from recgen.spec import read, read_text
from tests.spec.refusals import FILE, only, operator, place, problems


def test_a_number_without_a_point_is_a_number() -> None:
    assert operator("normalizer: {kind: sum, eps: 1e-6}").normalizer.eps == 1e-6


@pytest.mark.parametrize("word", ["off", "no", "on", "yes", "y", "064", "6:40", "1e-6", "2001-01-01", "true", "0x10"])
def test_text_stays_text_whatever_it_looks_like(word: str) -> None:
    assert operator(f"title: {word}").title == word


@pytest.mark.parametrize("word", ["off", "no", "on", "yes", "0", "1", "'true'"])
def test_only_true_and_false_are_flags(word: str) -> None:
    problem = only(f"name: mine\ncausal: {word}\n")
    assert place(problem) == (2, 9)
    assert "true or false is needed" in problem.reason
    assert problem.fix.startswith("write ")


@pytest.mark.parametrize(
    ("written", "reason", "fix"),
    [
        ("off", "this is the text 'off'", "such as 1e-6"),
        ("6:40", "this is the text '6:40'", "such as 1e-6"),
        ("064", "064 starts with a zero", "write 64"),
        ("0x10", "a decimal number is needed", "write 16"),
        ("1_000", "this is the text '1_000'", ""),
        ("'1e-6'", "this is quoted text", "remove the quotes"),
        ("~", "no value is given", "remove the key"),
        ("null", "no value is given", "remove the key"),
        (".nan", "this is the text '.nan'", ""),
        ("[1]", "this is a list", "a single value"),
        ("1e-999", "out of range", ""),
        ("0", "without eps the denominator must be above 0", "eps: 1e-6"),
        ("-1", "eps keeps the denominator from being 0", "eps: 1e-6"),
    ],
)
def test_what_is_no_number_is_refused(written: str, reason: str, fix: str) -> None:
    problem = only(f"name: mine\nnormalizer:\n  kind: sum\n  eps: {written}\n")
    assert place(problem) == (4, 8)
    assert reason in problem.reason
    assert fix in problem.fix


def test_a_missing_value_is_refused_at_its_key() -> None:
    problem = only("name: mine\ntitle:\nscale: 1\n")
    assert place(problem) == (2, 1)
    assert "no value is given" in problem.reason


def test_duplicate_keys_are_refused_where_they_repeat() -> None:
    problem = only("name: mine\nscale: 1\ninputs: {g: B T H, g: B T H K}\n")
    assert place(problem) == (3, 20)
    assert "'g' is already given in line 3" in problem.reason


@pytest.mark.parametrize(
    ("text", "where", "reason"),
    [
        ("name: &a mine\n", (1, 7), "anchors are not taken"),
        ("name: mine\ntitle: *a\n", (2, 8), "aliases are not taken"),
        ("name: !!python/object/apply:os.system [ls]\n", (1, 7), "tags are not taken"),
        ("name: !custom mine\n", (1, 7), "tags are not taken"),
        ("name: mine\n<<: {scale: 1}\n", (2, 1), "there is no key '<<' here"),
        ("%YAML 1.1\n---\nname: mine\n", (2, 1), "directives are not taken"),
        ("name: mine\n---\nname: yours\n", (2, 1), "a second document"),
        ("- name\n- mine\n", (1, 1), "this is a list"),
        ("mine\n", (1, 1), "this is one value"),
        ("", (1, 1), "this is nothing"),
        ("# only a comment\n", (1, 1), "this is nothing"),
        ("? [a, b]\n: mine\n", (1, 3), "a key must be one word"),
        ("name: 'mine\n", (1, 7), "not YAML"),
        ("name: a: b\n", (1, 8), "not YAML"),
        ("name: mine\n\ttitle: x\n", (2, 1), "not YAML"),
        ("name: mi\0ne\n", (1, 9), "a NUL byte"),
        ("name: mi\x07ne\n", (1, 9), "a control or invisible character"),
        ("name: mine\ntitle: a\u00a0b\n", (2, 9), "not a plain one"),
        ("name: mine\ntitle: a\u202eb\n", (2, 9), "a control or invisible character"),
        ("name: mine\ntitle: " + "[" * 13 + "]" * 13 + "\n", (2, 19), "nested more than"),
        ("x: 1\n" * 40000, (1, 1), "the text is longer than"),
        ("name: mine\ntitle: " + "x" * 3000, (2, 1), "the line is longer than"),
    ],
)
def test_what_is_refused_of_yaml(text: str, where: tuple[int, int], reason: str) -> None:
    problem = problems(text)[0]
    assert reason in problem.reason
    assert place(problem) == where


@pytest.mark.parametrize(
    ("text", "where", "fix"),
    [
        ("name: a\ndecay:\n\ttype: fixed\n", (3, 1), "indent with spaces"),
        ("name: a\n  title: b\n", (2, 3), "begin it in column 1, like name above it"),
        ("name: a\ndecay:\n    type: fixed\n  log: -1\n", (4, 3), "begin it in column 5, like type above it"),
        ("name: a\nscale: 1 +\n  K\n  title: b\n", (4, 3), "begin it in column 1, like scale above it"),
        ("name a\nscale: 2\n", (1, 1), "write name: a"),
        ("name:a\nscale: 2\n", (1, 1), "write name: a"),
        ("name: a\n# why\ntitle b # c\n\nscale: 2\n", (3, 1), "write title: b"),
        ("name: a\ndecay:\n  type fixed\n  log: -1\n", (3, 3), "write type: fixed"),
        ("name: a\nscale: 2\ntitle b\n", (3, 1), "write title: b"),
        ("name: a\nkey: k : 2\n", (2, 8), 'in quotes, such as "k : 2"'),
        ("name: a\nkey: @x\n", (2, 6), "in quotes"),
        ('name: a\nkey: "k" * 2\n', (2, 10), "in quotes"),
        ('name: a\nkey: "k" + 2\n', (2, 10), "in quotes"),
        ("name: a\nkey: * 2\n", (2, 6), "in quotes"),
        ("name: a\n- b\n", (2, 1), "write `key: value`"),
        ("name: a\ninputs: {g: B T H\nscale: 2\n", (2, 9), "close it with }"),
        ("name: a\nbounds: [-1, 0\n", (2, 9), "close it with ]"),
        ("name: a\ntitle: 'b\n", (2, 8), "close it at the end"),
        ('name: a\ntitle: "\\q"\n', (2, 9), "write the backslash twice"),
        ("name: a\nkey: #k\n", (2, 1), "begins a comment"),
        ("name: a\ntitle: " + "[" * 13 + "]" * 13, (2, 19), "write it flatter"),
    ],
)
def test_a_mistake_of_yaml_is_shown_where_it_is_with_a_fix(text: str, where: tuple[int, int], fix: str) -> None:
    problem = only(text)
    assert fix in problem.fix
    assert place(problem) == where


def test_yaml_1_2_may_be_asked_for() -> None:
    assert read_text("%YAML 1.2\n---\nname: mine\n").name == "mine"


def test_windows_line_ends_and_a_byte_order_mark_change_nothing(tmp_path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(b"\xef\xbb\xbfname: mine\r\nscale: 1 / K\r\n")
    assert read(path).scale.text == "1 / K"


@pytest.mark.parametrize(
    ("data", "where", "reason"),
    [
        (b"name: mine\ntitle: \xff\xfe\n", (2, 8), "not UTF-8"),
        ("name: mine\n".encode("utf-16"), (1, 1), "not UTF-8"),
        (b"\x7fELF\x02\x01\x01\x00", (1, 1), "control or invisible"),
        (b"x" * 40000, (1, 1), "larger than"),
    ],
)
def test_files_that_are_no_text_are_refused(tmp_path, data: bytes, where: tuple[int, int], reason: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(data)
    with pytest.raises(SpecError) as info:
        read(path)
    (problem,) = info.value.problems
    assert reason in problem.reason
    assert place(problem) == where
    assert problem.location.file == str(path)


def test_a_missing_file_names_the_nearest(tmp_path) -> None:
    (tmp_path / "retnet.yaml").write_text("name: retnet\n")
    with pytest.raises(SpecError, match="there is no such file") as info:
        read(tmp_path / "retnt.yaml")
    assert "retnet.yaml" in info.value.problems[0].fix


@pytest.mark.parametrize("missing", ["nofile.yaml", "oo.yaml", "o.yaml"])
def test_a_missing_file_names_none_that_is_quite_another(tmp_path, missing: str) -> None:
    (tmp_path / "o8.yaml").write_text("name: o8\n")
    with pytest.raises(SpecError) as info:
        read(tmp_path / missing)
    assert info.value.problems[0].fix == "give the path of a YAML file"


def test_a_folder_is_no_spec(tmp_path) -> None:
    with pytest.raises(SpecError, match="this is a folder"):
        read(tmp_path)


def test_all_problems_come_at_once_with_source_and_caret() -> None:
    text = "name: mine\nnormaliser: sum\ndecay: {type: gatd}\nscale: K^2\ncausal: no\n"
    with pytest.raises(SpecError) as info:
        read_text(text, FILE)
    assert str(info.value).split("\n") == [
        "operator.yaml:2:1: there is no key 'normaliser' here",
        "    normaliser: sum",
        "    ^~~~~~~~~~",
        "    fix: did you mean normalizer?",
        "operator.yaml:3:15: 'gatd' is none of none, fixed, learned or gated",
        "    decay: {type: gatd}",
        "                  ^~~~",
        "    fix: did you mean gated?",
        "operator.yaml:5:9: true or false is needed here, not 'no'",
        "    causal: no",
        "            ^~",
        "    fix: write false",
    ]


@pytest.mark.parametrize(
    ("written", "where"),
    [
        ("scale: K * W", (2, 12)),
        ("scale: 'K * W'", (2, 13)),
        ('scale: "K * W"', (2, 13)),
        ('scale: "K * \\x57"', (2, 8)),
        ("scale:   # why\n  K *\n  W", (4, 3)),
        ("scale: |\n    K *\n    W\n", (4, 5)),
        ("scale: >-\n    K *\n    W\n", (4, 5)),
        ("scale: |2-\n    K * W\n", (3, 9)),
    ],
)
def test_a_mistake_inside_a_value_is_pointed_at(written: str, where: tuple[int, int]) -> None:
    problem = only(f"name: mine\n{written}\n")
    assert place(problem) == where
    assert problem.text == "W"
