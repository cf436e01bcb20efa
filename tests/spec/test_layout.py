"""The normal form of a spec: keys in order, few quotes, comments where they were, and nothing else than before."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recgen.errors import SpecError
from recgen.resources import families_dir, specs_dir
from recgen.spec import read_text
from recgen.spec.layout import WIDTH, normal_form, normalise
from recgen.spec.write import to_yaml
from recgen.verify.specs import specs

FILES = [*sorted(specs_dir().glob("*.yaml")), *sorted(families_dir().glob("*.yaml"))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_files_of_recgen_are_in_their_normal_form(path: Path) -> None:
    assert normalise(path, check=True), f"recgen fmt {path}"


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("scale:   2\nname:  a\n", "name: a\nscale: 2\n"),
        ("name: 'a'\ntitle: \"b, c\"\n", "name: a\ntitle: b, c\n"),
        ("name: a\ntitle: 'it''s: #1'\n", 'name: a\ntitle: "it\'s: #1"\n'),
        ("name: a\ntitle: 'true'\n", 'name: a\ntitle: "true"\n'),
        ("name: a\ntitle: 'null'\n", 'name: a\ntitle: "null"\n'),
        (
            "name: a\ndecay: { constants : {tau: 2},family: 'key_gate' }\n",
            "name: a\ndecay: {family: key_gate, constants: {tau: 2}}\n",
        ),
        ("name: a\nscale: >\n  K **\n  -0.5\n", "name: a\nscale: K ** -0.5\n"),
        ("name: a\nscale: 1 +\n  K\n", "name: a\nscale: 1 + K\n"),
        ("---\r\nname: a\r\n\r\n\r\n\r\nscale: 2  \r\n...\r\n", "name: a\n\nscale: 2\n"),
        (
            "name: a\nlicense: |\n  (c) me\n    and you\n\nscale: 2",
            "name: a\nlicense: |-\n  (c) me\n    and you\n\nscale: 2\n",
        ),
        (
            "name: a\ndecay: {type: fixed, log: -1, bounds:\n  [ -1,0 ]}\n",
            "name: a\ndecay: {type: fixed, log: -1, bounds: [-1, 0]}\n",
        ),
        (
            "name: a\nbounds:\n- -1\n- 0\ndecay: {type: fixed, log: -1}\n",
            "name: a\ndecay: {type: fixed, log: -1}\nbounds: [-1, 0]\n",
        ),
        ("name: a\ninputs: {b: B T H K, a: B T H K}\nquery: a\nkey: b\n",) * 2,
    ],
)
def test_what_the_normal_form_is(written: str, normal: str) -> None:
    assert normal_form(written) == normal
    assert normal_form(normal) == normal


def test_comments_stay_with_their_key() -> None:
    written = """\
#about the file

# on the scale
scale: 2 # behind it
name: a
decay: {  # on the decay
  # on the value
  value: 0.5, type: fixed  # on the type
}
# at the end
"""
    assert (
        normal_form(written)
        == """\
# about the file

name: a
decay:  # on the decay
  type: fixed  # on the type
  # on the value
  value: 0.5

# on the scale
scale: 2  # behind it
# at the end
"""
    )


@pytest.mark.parametrize("top", ["---\n# about it\n", "# about it\n---\n", "--- # about it\n"])
def test_a_comment_at_the_start_of_a_document_stays_there(top: str) -> None:
    normal = normal_form(f"{top}inputs: {{g: B T H}}\nname: a\nkey_weight: exp(g)\n")
    assert normal == "# about it\n\nname: a\ninputs: {g: B T H}\nkey_weight: exp(g)\n"
    assert normal_form(normal) == normal


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("params: {w: {init: 0, axes: H}}\nname: a\n", "name: a\nparams: {w: {axes: H, init: 0}}\n"),
        ("scale:  'K ** u' # why\nname: 'a'\n", "name: a\nscale: K ** u  # why\n"),
        ("query: '1 +'\nname: a\n", "name: a\nquery: 1 +\n"),
        (
            "name: a\ndecay: {constants: {t: 1}, family:  nowhere}\n",
            "name: a\ndecay: {family: nowhere, constants: {t: 1}}\n",
        ),
    ],
)
def test_a_draft_that_is_no_operator_yet_is_put_in_order(written: str, normal: str) -> None:
    with pytest.raises(SpecError):
        read_text(written)
    assert normal_form(written) == normal
    assert normal_form(normal) == normal


def test_what_would_change_by_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recgen.spec.layout._quoted", lambda text, nested=False: text)
    for wrong in ("", "params: {w: {axes: H, init: 0}}\n"):
        with pytest.raises(SpecError, match="would mean something else"):
            normal_form(f"name: a\ntitle: 'b # c'\n{wrong}")


def test_the_hint_for_editors_stays_in_the_first_line() -> None:
    hint = "# yaml-language-server: $schema=x.json"
    assert normal_form(f"# why\n{hint}\nscale: 2\nname: a\n") == f"{hint}\nname: a\n# why\nscale: 2\n"


def test_a_long_mapping_is_written_over_lines_and_so_is_a_long_expression() -> None:
    weight = " + ".join(["sigmoid(g)"] * 12)
    start = "{axes: H, init: h * 1e-3" + " + 0" * 23 + "}"
    text = f"name: a\nparams: {{w: {start}}}\ninputs: {{g: B T H}}\nkey_weight: {weight} + w\n"
    normal = normal_form(text)
    assert max(map(len, normal.splitlines())) <= WIDTH < max(map(len, text.splitlines()))
    assert read_text(normal) == read_text(text)
    assert normal_form(normal) == normal


def test_a_wrong_spec_is_refused_as_by_the_reader() -> None:
    with pytest.raises(SpecError, match="<spec>:2:1: there is no key 'scle' here"):
        normal_form("name: a\nscle: 2\n")


def _untidy(text: str, rng: random.Random) -> tuple[str, list[str]]:
    """The same spec with its top-level keys in any order, comments anywhere, and other quotes; and the comments."""
    blocks: list[list[str]] = []
    for line in text.splitlines():
        if not line.startswith(" "):
            blocks.append([])
        blocks[-1].append(line)
    rng.shuffle(blocks)
    comments: list[str] = []
    lines: list[str] = []
    for line in (line for block in blocks for line in block):
        if rng.random() < 0.3:
            comments.append(f"# comment {len(comments)}")
            lines.append(" " * rng.randrange(6) + comments[-1])
        if rng.random() < 0.3:
            lines.append("")
        key, _, value = line.partition(": ")
        if any(letter in value for letter in "+*/(") and value[0] not in '"[{' and rng.random() < 0.3:
            line = f"{key}:  '{value}'"
        if value and rng.random() < 0.2:
            comments.append(f"# comment {len(comments)}")
            line += f"   {comments[-1]}"
        lines.append(line)
    return "\n".join(lines), comments


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(specs(), st.randoms(use_true_random=False))
def test_drawn_specs_keep_their_meaning_and_their_comments(content: dict[str, object], rng: random.Random) -> None:
    text = to_yaml({"name": "drawn", **content})
    try:
        meaning = read_text(text)
    except SpecError:
        return
    untidy, comments = _untidy(text, rng)
    normal = normal_form(untidy)
    assert read_text(normal) == meaning
    assert normal_form(normal) == normal
    assert sorted(line[line.index("#") :] for line in normal.splitlines() if "#" in line) == sorted(comments)
