"""`recgen verify --against`: exit codes, and flags that do not fit."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

Command = Callable[..., Result]

OWN = """
import torch
import torch.nn.functional as F

def simple(q, k, v, gate, scale):
    weight = torch.where(torch.ones(q.shape[1], q.shape[1]).tril() > 0, 0.0, -torch.inf)
    total = F.logsigmoid(gate).cumsum(1).transpose(1, 2)
    weight = (total[..., :, None] - total[..., None, :] + weight).exp()
    return torch.einsum("bthk,bihk,bhti,bihv->bthv", scale * q, k, weight, v)

def wrong(q, k, v, gate, scale):
    return simple(q, k, v, 2 * gate, scale)
"""


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_simple.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "own_simple", raising=False)


def test_an_implementation_that_is_the_same(recgen_command: Command, tmp_path: Path) -> None:
    result = recgen_command("verify", "simple_gla", "--against", "own_simple:simple", "--json", tmp_path / "a.json")
    assert result.exit_code == 0, result.stdout
    assert "gate=g" in result.stdout and "the same operator" in result.stdout
    assert json.loads((tmp_path / "a.json").read_text())["ok"]


def test_several_draws(recgen_command: Command) -> None:
    result = recgen_command("verify", "simple_gla", "--against", "own_simple:simple", "--examples", "3")
    assert result.exit_code == 0 and "the worst of 3 draws" in result.stdout


def test_one_that_is_not(recgen_command: Command) -> None:
    result = recgen_command("verify", "simple_gla", "--against", "own_simple:wrong")
    assert result.exit_code == 1
    assert "DIFFERS" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("gla", "retnet", "--against", "own_simple:simple"), "one SPEC at a time"),
        (("simple_gla", "--against", "own_simple:simpel"), "did you mean simple"),
        (("simple_gla", "--against", "own_simple:simple", "--map", "gat=g"), "did you mean gate"),
        (("simple_gla", "--against", "own_simple:simple", "--form", "chunk"), "--form: this does not go with"),
        (("simple_gla", "--against", "own_simple:simple", "--budget", "0"), "--budget: this does not go with"),
        (("simple_gla", "--against", "own_simple:simple", "--repro", "x.py"), "--repro: this does not go with"),
        (("simple_gla", "--map", "gate=g"), "--against MODULE:FUNCTION"),
        (("simple_gla", "--layout", "bhtd"), "--against MODULE:FUNCTION"),
    ],
)
def test_flags_that_do_not_fit(arguments: tuple[str, ...], said: str, recgen_command: Command) -> None:
    result = recgen_command("verify", *arguments)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.replace("│", " ").split())
