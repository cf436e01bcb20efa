"""Small faults: found over the syntax tree, tried in processes that may hang or die, told with their line."""

from __future__ import annotations

import ast
import json
import random
from pathlib import Path
from types import ModuleType

import pytest

from recgen.verify.mutation import run
from recgen.verify.mutation import worker as workshop
from recgen.verify.mutation.faults import Fault, faults
from recgen.verify.mutation.report import Survey, Tried

from .conftest import HANDMADE, broken

GENERATED = Path(__file__).resolve().parents[2] / "generated"

TEXT = '''
TABLE = {"a": 1 + 2}

def decayed(x: tuple[1 + 1], n=3 - 1):
    """1 + 1 is said here."""
    if n < 0:
        raise ValueError(f"n is {n - 1}")
    σ = torch.exp(x[n, 1:]) * torch.where(n < 4, x.tril(), -x)
    if n == 2 or x.sum(-1, keepdim=True, strict=True) is None:
        return σ, launch(x, 7, num_warps=4)
'''


def found(kind: str) -> list[tuple[str, str]]:
    return [(fault.before, fault.after) for fault in faults(TEXT) if fault.kind == kind]


def test_faults_are_those_that_people_make() -> None:
    assert found("factor dropped") == [
        ("torch.exp(x[n, 1:]) * torch.where(n < 4, x.tril(), -x)", "torch.exp(x[n, 1:])"),
        ("torch.exp(x[n, 1:]) * torch.where(n < 4, x.tril(), -x)", "torch.where(n < 4, x.tril(), -x)"),
    ]
    assert found("function left out") == [("torch.exp(x[n, 1:])", "x[n, 1:]")]
    assert found("index off by one") == [("1", "2")]
    assert found("argument off by one") == [("-1", "-2"), ("7", "8")]
    assert found("mask dropped") == [("torch.where(n < 4, x.tril(), -x)", "x.tril()")]
    assert found("call left out") == [("x.tril()", "x")]
    assert found("sign lost") == [("-x", "x")]
    assert found("flag turned round") == [
        ("x.sum(-1, keepdim=True, strict=True)", "x.sum(-1, keepdim=False, strict=True)")
    ]
    assert [after for _, after in found("results swapped")] == ["(launch(x, 7, num_warps=4), σ)"]
    assert [before for before, _ in found("comparison")] == [
        "n < 4",
        "n == 2",
        "x.sum(-1, keepdim=True, strict=True) is None",
    ]


def test_checks_of_arguments_text_and_annotations_are_left_alone() -> None:
    assert {fault.line for fault in faults(TEXT)} == {8, 9, 10}


def test_a_fault_changes_its_own_text_and_no_line() -> None:
    for fault in faults(TEXT):
        faulty = fault.apply(TEXT)
        ast.parse(faulty)
        assert fault.after in faulty and faulty != TEXT
        assert [a == b for a, b in zip(TEXT.split("\n"), faulty.split("\n"), strict=True)].count(False) == 1


@pytest.mark.parametrize("name", ["gla", "mamba"])
def test_faults_of_an_emitted_module_are_python(name: str) -> None:
    source = (GENERATED / f"{name}.py").read_text(encoding="utf-8")
    every = faults(source)
    assert len(every) > 1000
    assert any("tl.exp" in fault.before for fault in every if fault.kind == "factor dropped"), "kernels are among them"
    for fault in random.Random(0).sample(every, 15):
        ast.parse(fault.apply(source))


def test_faults_are_caught_or_survive(handmade: ModuleType) -> None:
    seen: list[tuple[int, int, str]] = []
    survey = run(handmade, limit=9, seed=2, budget=60, progress=lambda *call: seen.append(call))
    assert len(survey.tried) == survey.chosen == len(seen) == 9 <= survey.reached <= survey.found
    caught = [one for one in survey.tried if one.caught]
    assert len(caught) > 4, survey.render()
    assert {"chunk on torch", "step on torch"} & {one.by for one in caught}
    assert json.loads(json.dumps(survey.as_dict()))["tried"][0]["fault"]["line"] == survey.tried[0].fault.line
    printed = survey.render()
    assert f"{len(caught)} of 9 faults caught" in printed and "seed 2" in printed
    for one in survey.survivors:
        assert f"{one.fault.line}  {one.fault.function}" in printed.split("survived, in")[1]


def test_a_module_that_is_wrong_already_is_said_to_be(tmp_path: Path) -> None:
    survey = run(broken(tmp_path, "inside = row[:, None] >=", "inside = row[:, None] >"), limit=3, budget=60)
    assert survey.wrong and not survey.tried
    assert " on torch: " in survey.render() and "no fault was tried" in survey.render()


@pytest.mark.parametrize(
    ("text", "by"),
    [
        ('__import__("time").sleep(60)', "time limit"),
        ('__import__("os")._exit(3)', "crash"),
        ("1 / 0", "naive"),
        ("1", ""),
    ],
)
def test_a_faulty_module_may_hang_or_die(text: str, by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tried(text, tmp_path, monkeypatch)[0] == by


def tried(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """What is said of the handmade module with `text` as its last line."""
    fault = Fault("", "", 1, "import torch", text, 0, 0)
    monkeypatch.setattr(Fault, "apply", lambda self, text: f"{text}\n{self.after}\n")
    return workshop._tried(fault, HANDMADE.read_text(), [], folder / "faulty.py", 3.0)


def test_where_the_system_does_not_tell_the_memory_none_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workshop, "STATM", tmp_path / "statm")
    assert tried("1", tmp_path, monkeypatch) == ("", "")
    assert tried('__import__("os")._exit(3)', tmp_path, monkeypatch)[0] == "crash"


@pytest.mark.parametrize(("failure", "says"), [(OSError("no limits"), "no limits"), (SystemExit(4), "exit code 4")])
def test_a_failure_of_the_tool_itself_catches_nothing(
    failure: BaseException, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def settle() -> None:
        raise failure

    monkeypatch.setattr(workshop, "_settle", settle)
    with pytest.raises(RuntimeError, match=says):
        tried("1", tmp_path, monkeypatch)


def test_a_share_is_of_what_was_tried() -> None:
    fault = Fault("sign lost", "f", 3, "-x", "x", 0, 0)
    survey = Survey("mine", "mine.py", 0, 9, 7, 3, 2, tried=[Tried(fault, "chunk on torch", "…"), Tried(fault, "", "")])
    assert survey.share == 0.5 and len(survey.survivors) == 1
    assert "1 of 2 faults caught (1 more were not reached in time), drawn from 7" in survey.render()
    assert Survey("none", "none.py", 0).share == 0.0
