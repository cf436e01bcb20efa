"""A spec made in Python: the keys as arguments; it prints itself, and shows itself as mathematics."""

from __future__ import annotations

import copy
import pickle

import pytest

import recgen
from recgen.resources import catalogue
from recgen.spec import Spec, SpecError, read, read_dict

MINE = {"name": "mine", "title": "Mine", "inputs": {"g": "B T H"}, "decay": {"type": "gated", "log": "logsigmoid(g)"}}


def test_the_keys_of_a_spec_are_arguments() -> None:
    spec = recgen.Spec(**MINE, scale="K ** -0.5")
    assert spec == read_dict(MINE | {"scale": "K ** -0.5"}) == Spec(MINE, scale="K ** -0.5")
    assert spec.decay.log.text == "logsigmoid(g)" and spec.scale.text == "K ** -0.5"


def test_what_is_wrong_is_said_as_for_a_file() -> None:
    with pytest.raises(SpecError, match="there is no key 'scle' here(.|\n)*did you mean scale"):
        Spec(**MINE, scle=2)
    with pytest.raises(SpecError, match="the key 'name' is missing"):
        Spec(title="Mine")


def test_a_spec_is_made_of_all_its_parts_or_not_at_all() -> None:
    with pytest.raises(TypeError, match="decay"):
        Spec.of_parts(name="mine")


@pytest.mark.parametrize("name", ["gla", "rwkv4", "mlstm", "s4d"])
def test_it_prints_the_call_that_makes_it(name: str) -> None:
    spec = read(catalogue()[name])
    assert repr(spec).startswith(f"Spec(name='{name}', title=")
    assert eval(repr(spec), {"Spec": Spec}) == spec


def test_it_is_copied_and_sent_to_other_processes() -> None:
    spec = Spec(MINE)
    assert pickle.loads(pickle.dumps(spec)) == copy.deepcopy(spec) == spec
    assert len({spec, copy.copy(spec)}) == 1


def test_a_notebook_shows_the_recurrence() -> None:
    shown = Spec(**MINE)._repr_markdown_()
    assert r"S_{t,m,c} &= e^{\ell_{t}} \, S_{t-1,m,c} + \mathrm{key}_{t,m} \, \mathrm{value}_{t,c} \\" in shown
    assert r"o_{t,c} &= \sum_{m} \mathrm{query}_{t,m} \, S_{t,m,c}" in shown
    assert "| `g` | B T H | input, batch × time × head |" in shown
    latex = Spec(MINE)._repr_latex_()
    assert latex.startswith("$\\displaystyle \\begin{aligned}") and latex.endswith("\\end{aligned}$")
    assert latex[len("$\\displaystyle ") : -1] in shown


@pytest.mark.parametrize("name", ["linear_attention_global", "mlstm", "rg_lru", "s4d"])
def test_every_kind_of_recurrence_is_shown(name: str) -> None:
    shown = read(catalogue()[name])._repr_markdown_()
    assert shown.count("$$") == 2 and "S_{" in shown and "o_{t,c} &=" in shown


def test_a_title_is_no_markup() -> None:
    shown = Spec(MINE | {"title": "<b>*a*</b> $x$ `y` _é_"})._repr_markdown_()
    assert shown.splitlines()[0] == r"**mine**: \<b\>\*a\*\<\/b\> \$x\$ \`y\` \_é\_"


def test_what_cannot_be_derived_yet_is_shown_as_text() -> None:
    spec = Spec(name="mine", decay={"family": "diagonal"}, normalizer="sum")
    assert spec._repr_latex_() is None
    assert "```yaml\nname: mine\n" in spec._repr_markdown_()


def test_load_takes_the_object(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = Spec(MINE)
    from recgen.loader import resolve

    assert resolve(spec) is spec and resolve(MINE) == spec and resolve("gla").name == "gla"
