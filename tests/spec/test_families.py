"""Decay families: built in, in a user's files, and registered; no file of the compiler knows their names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import sympy

from recgen.algebra.activations import LogSigmoid
from recgen.errors import SpecError
from recgen.resources import families_dir
from recgen.spec import Family, Spec, load_families, read, read_text, register_family, unregister_family
from recgen.spec.model import symbol
from tests.spec.refusals import only, operator, place, problems

MINE = """\
name: softplus_gate
doc: A gate with a learned rate
type: gated
inputs:
  g: B T H
params:
  rate: {axes: H, init: 0}
constants:
  tau: 2
log: -softplus(g) * exp(rate) / tau
"""

OBJECT = Family(
    name="softplus_gate",
    type="gated",
    inputs={"g": "B T H"},
    params={"rate": {"axes": "H", "init": 0}},
    constants={"tau": 2},
    log="-softplus(g) * exp(rate) / tau",
    doc="A gate with a learned rate",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the family in a file, and a spec that names it."""
    monkeypatch.delenv("RECGEN_FAMILIES", raising=False)
    (tmp_path / "softplus_gate.yaml").write_text(MINE)
    (tmp_path / "mine.yaml").write_text("name: mine\ndecay: {family: softplus_gate}\n")
    return tmp_path


@pytest.fixture
def registered() -> Iterator[Family]:
    yield register_family(OBJECT)
    unregister_family(OBJECT.name)


def check_is_mine(spec: Spec) -> None:
    assert [tensor.name for tensor in spec.tensors] == ["q", "k", "v", "g", "rate"]
    assert spec.decay.family == "softplus_gate"
    assert spec.decay.log.text == "-softplus(g) * exp(rate) / 2"
    assert spec.params[0].init is not None and spec.params[0].init.tree == 0


@pytest.mark.parametrize("path", sorted(families_dir().glob("*.yaml")), ids=lambda path: path.stem)
def test_every_built_in_family_makes_a_spec(path: Path) -> None:
    state = "state: vector\n" if "per: channel" in path.read_text() else ""
    spec = operator(f"{state}decay: {{family: {path.stem}}}\n")
    assert spec.decay.family == path.stem
    assert load_families()[path.stem].doc


def test_a_family_is_found_by_the_path_of_its_file(folder: Path) -> None:
    (folder / "mine.yaml").write_text("name: mine\ndecay: {family: ./softplus_gate.yaml}\n")
    check_is_mine(read(folder / "mine.yaml"))


def test_a_family_is_found_in_a_folder_of_the_caller(folder: Path) -> None:
    check_is_mine(read(folder / "mine.yaml", families=[folder]))


def test_a_family_is_found_in_the_folders_of_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECGEN_FAMILIES", os.pathsep.join(["/nowhere", str(folder)]))
    check_is_mine(read(folder / "mine.yaml"))


def test_a_registered_object_is_a_family(registered: Family) -> None:
    check_is_mine(operator(f"decay: {{family: {registered.name}}}\n"))
    assert load_families()[registered.name] == registered


def test_file_and_object_give_one_spec(folder: Path, registered: Family) -> None:
    from_object = operator("decay: {family: softplus_gate}\n")
    from_file = read_text("name: mine\ndecay: {family: ./softplus_gate.yaml}\n", str(folder / "other.yaml"))
    assert from_object == from_file
    assert from_object.digest == from_file.digest


def test_a_family_written_out_is_the_same_operator() -> None:
    short = operator("decay: {family: key_gate, constants: {tau: 16}}\n")
    full = operator("inputs: {g: B T H K}\ndecay: {type: gated, per: key, log: logsigmoid(g) / 16}\n")
    assert short == full
    assert short.digest == full.digest


def test_a_spec_may_set_the_constants() -> None:
    g = symbol("g")
    assert operator("decay: {family: scalar_gate}\n").decay.log.tree == LogSigmoid(g)
    decay = operator("decay: {family: scalar_gate, constants: {tau: 0.1}}\n").decay
    assert decay.log.tree == 10 * LogSigmoid(g)
    assert decay.log.text == "logsigmoid(g) / 0.1"


def test_a_constant_that_makes_the_state_grow_is_refused_in_the_family() -> None:
    problem = only("name: mine\ndecay: {family: scalar_gate, constants: {tau: -1}}\n")
    assert problem.location.file == str(families_dir() / "scalar_gate.yaml")
    assert "can be positive" in problem.reason


def test_a_spec_may_declare_the_bounds_of_a_family() -> None:
    assert operator("decay: {family: scalar_gate}\nbounds: [-8, 0]\n").decay.bounds == (-8.0, 0.0)


def test_a_spec_may_give_a_familys_parameter_another_start() -> None:
    spec = operator("decay: {family: learned_exponential}\nparams: {w: {axes: H, init: -3}}\n")
    assert [tensor.name for tensor in spec.params] == ["w"]
    assert spec.params[0].init is not None and spec.params[0].init.tree == sympy.Integer(-3)


@pytest.mark.parametrize(
    ("body", "where", "reason", "fix"),
    [
        ("decay: {family: scalar_gat}", (2, 17), "there is no decay family 'scalar_gat'", "did you mean scalar_gate?"),
        ("decay: {family: quux}", (2, 17), "there is no decay family 'quux'", "the families are channel_gate"),
        ("decay: {family: ./quux.yaml}", (2, 17), "there is no file ./quux.yaml", "relative to"),
        ("decay: {family: scalar_gate, log: 1}", (2, 30), "log comes from the family", "remove log"),
        ("decay: {family: scalar_gate, per: key}", (2, 30), "per comes from the family", "remove per"),
        ("decay: {family: scalar_gate, constants: {t: 1}}", (2, 42), "has no constant 't'", "its constants are tau"),
        ("decay: {family: scalar_gate, constants: {tau: a}}", (2, 47), "a number is needed", ""),
        ("decay: {family: multiscale, constants: {t: 1}}", (2, 41), "has no constant 't'", "the family has none"),
        ("decay: {family: scalar_gate}\ninputs: {g: B T H K}", (3, 10), "the family has an input g", "rename yours"),
        ("decay: {family: scalar_gate}\nparams: {g: {axes: H, init: 0}}", (3, 10), "the family has an input g", ""),
    ],
)
def test_how_a_family_may_be_named(body: str, where: tuple[int, int], reason: str, fix: str) -> None:
    problem = problems(f"name: mine\n{body}\n")[0]
    assert reason in problem.reason
    assert fix in problem.fix
    assert place(problem) == where


@pytest.mark.parametrize(
    ("old", "new", "where", "reason"),
    [
        ("type: gated", "typ: gated", (1, 1), "the key 'type' is missing"),
        ("softplus(g)", "softplu(g)", (10, 7), "there is no function softplu"),
        ("softplus(g)", "softplus(gg)", (10, 16), "gg is not declared"),
        ("-softplus(g)", "softplus(g)", (10, 6), "can be positive"),
        ("B T H", "B T H K", (10, 6), "per: head, but it varies by key channel"),
        ("init: 0", "init: S", (7, 25), "S is the state of the recurrence"),
        ("tau: 2", "rate: 2", (9, 3), "declared twice"),
        ("name: softplus_gate", "name: other", (1, 7), "this family is looked up as softplus_gate"),
        ("constants:", "params:", (8, 1), "already given in line 6"),
        ("exp(rate) / tau", "tau", (7, 3), "nothing in the decay depends on rate"),
        ("log:", "eps: 1\nlog:", (10, 1), "there is no key 'eps' here"),
    ],
)
def test_mistakes_in_a_family_point_into_its_file(
    folder: Path, old: str, new: str, where: tuple[int, int], reason: str
) -> None:
    path = folder / "softplus_gate.yaml"
    path.write_text(MINE.replace(old, new, 1))
    with pytest.raises(SpecError) as info:
        read(folder / "mine.yaml", families=[folder])
    found = [problem for problem in info.value.problems if reason in problem.reason]
    assert [(problem.location.file, *place(problem)) for problem in found] == [(str(path), *where)]


def test_a_name_with_two_families_is_refused(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    second = tmp_path_factory.mktemp("second")
    (second / "softplus_gate.yaml").write_text(MINE)
    with pytest.raises(SpecError, match="softplus_gate names several families") as info:
        read(folder / "mine.yaml", families=[folder, second])
    assert place(info.value.problems[0]) == (2, 17)
    (folder / "multiscale.yaml").write_text("name: multiscale\ntype: fixed\nlog: -1\n")
    with pytest.raises(SpecError, match="multiscale names several families"):
        read_text("name: mine\ndecay: {family: multiscale}\n", families=[folder])


def test_only_the_named_file_is_read(folder: Path) -> None:
    (folder / "broken.yaml").write_text("][")
    check_is_mine(read(folder / "mine.yaml", families=[folder]))


def test_registering_is_checked_at_once() -> None:
    with pytest.raises(SpecError, match="<family grower>:"):
        register_family(Family(name="grower", type="gated", inputs={"g": "B T H"}, log="g"))
    with pytest.raises(ValueError, match="a built-in family"):
        register_family(Family(name="multiscale", type="fixed", log="-1"))
    with pytest.raises(TypeError, match="recgen.Family"):
        register_family("multiscale")  # type: ignore[arg-type]
    assert "grower" not in load_families()


def test_registering_twice_changes_nothing_and_another_is_refused(registered: Family) -> None:
    assert register_family(registered) == registered
    with pytest.raises(ValueError, match="registered already"):
        register_family(Family(name=registered.name, type="fixed", log="-1"))


@pytest.mark.parametrize("path", ["../softplus_gate.yaml", "a/../../softplus_gate.yaml", "{folder}/softplus_gate.yaml"])
def test_a_family_outside_the_specs_folder_is_refused_by_its_path(folder: Path, path: str) -> None:
    inner = folder / "inner"
    inner.mkdir()
    (inner / "mine.yaml").write_text(f"name: mine\ndecay: {{family: {path.format(folder=folder)}}}\n")
    with pytest.raises(SpecError, match="leads out of the spec's folder"):
        read(inner / "mine.yaml")
