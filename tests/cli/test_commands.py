"""What check, explain, verify, bench, demo and families hand on, and what they make of the answer."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.testing import Result

from recgen.spec import Spec

Command = Callable[..., Result]
WriteSpec = Callable[..., Path]


def test_check_says_what_was_understood(recgen_command: Command) -> None:
    result = recgen_command("check", "gla", "linear_attention")
    assert result.exit_code == 0
    assert "gla: gated decay per key; q [B T H K], k [B T H K], v [B T H V], g [B T H K]" in result.stdout
    assert "linear_attention: no decay" in result.stdout


@pytest.mark.parametrize(
    ("stage", "latex"), [("read", False), ("derive", False), ("plan", False), ("read", True), ("derive", True)]
)
def test_explain_prints_the_stage(
    stage: str, latex: bool, recgen_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recgen.compiler.explain", lambda spec, stage, latex: f"{spec.name} {stage} {latex}")
    result = recgen_command("explain", "gla", "--stage", stage, *(["--latex"] if latex else []))
    assert (result.exit_code, result.stdout) == (0, f"gla {stage} {latex}\n")


@dataclass
class Report:
    ok: bool

    def render(self) -> str:
        return "the report"

    def as_dict(self) -> dict[str, float]:
        return {"worst": float("nan")}

    @property
    def failures(self) -> list[SimpleNamespace]:
        return [] if self.ok else [SimpleNamespace(snippet="print(1)\n"), SimpleNamespace(snippet="print(2)\n")]


@pytest.mark.parametrize(("ok", "code"), [(True, 0), (False, 1)])
def test_verify_fails_when_a_report_does(
    ok: bool, code: int, recgen_command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[Any] = []

    def verify_spec(spec: Spec, **options: Any) -> Report:
        options.pop("progress")(1, 2, "chunk on torch [1/2]")
        asked.append((spec.name, options))
        return Report(ok if spec.name == "gla" else True)

    monkeypatch.setattr("recgen.verify.verify_spec", verify_spec)
    monkeypatch.setattr("recgen.loader.load", lambda spec: SimpleNamespace(chunk=1, step=1))
    result = recgen_command(
        *("verify", "gla", "retnet", "--form", "chunk", "--form", "step", "--examples", "3", "--seed", "7"),
        *("--budget", "9", "--json", tmp_path / "new" / "report.json", "--repro", tmp_path / "fails.py"),
    )
    assert result.exit_code == code
    assert "the report" in result.stdout
    options = {"forms": ["chunk", "step"], "examples": 3, "seed": 7, "budget": 9.0}
    assert asked == [("gla", options), ("retnet", options)]
    written = json.loads((tmp_path / "new" / "report.json").read_text())
    assert written == {"ok": ok, "reports": [{"worst": None}, {"worst": None}]}
    scripts = {path.name: path.read_text() for path in tmp_path.glob("fails*.py")}
    assert scripts == ({} if ok else {"fails.py": "print(1)\n", "fails-2.py": "print(2)\n"})


def test_a_form_that_the_operator_does_not_have(recgen_command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recgen.loader.load", lambda spec: SimpleNamespace(parallel=1))
    result = recgen_command("verify", "gla", "--form", "parallel", "--form", "step")
    assert result.exit_code == 2
    assert "gla has no form 'step'" in result.stderr


@pytest.mark.parametrize(("ok", "code"), [(True, 0), (False, 1)])
def test_bench_hands_on_what_to_measure(
    ok: bool, code: int, recgen_command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[Any] = []

    def measure(specs: list[Spec], out: Path | None, quick: bool, **options: Any) -> SimpleNamespace:
        asked.append(([spec.name for spec in specs], out, quick, options))
        return SimpleNamespace(ok=ok)

    monkeypatch.setattr("recgen.bench.run", measure)
    plot, html = tmp_path / "a.png", tmp_path / "a.html"
    drawn = ("--plot", plot, "--html", html)
    assert recgen_command("bench", "gla", "retnet", "--quick", "-o", tmp_path / "times", *drawn).exit_code == code
    assert recgen_command("bench").exit_code == code
    assert asked == [
        (["gla", "retnet"], tmp_path / "times", True, {"device": "cpu", "plot": plot, "html": html}),
        ([], None, False, {"device": "cpu", "plot": None, "html": None}),
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("glaa",), "did you mean gla?"),
        (("gla", "--plot", "curves.svg"), "not a .png file"),
        (("gla", "--device", "cuda"), "torch sees no GPU"),
    ],
)
def test_bench_refuses_before_it_measures(
    arguments: tuple[str, ...], said: str, recgen_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    result = recgen_command("bench", *arguments)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.replace("│", " ").split())


def test_demo_says_where_the_report_is(
    recgen_command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("recgen.demo.run", lambda out: out)
    result = recgen_command("demo", "-o", tmp_path / "demo.html")
    assert result.exit_code == 0
    assert str(tmp_path / "demo.html") in result.stdout


def test_families_lists_the_built_in_ones(recgen_command: Command) -> None:
    result = recgen_command("families")
    assert result.exit_code == 0
    assert "scalar_gate" in result.stdout


def test_a_system_error_that_is_about_no_file_is_said_alone(
    recgen_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(TyperGroup, "invoke", full)
    result = recgen_command("families")
    assert result.exit_code == 2
    assert result.stderr.strip() == "[Errno 28] No space left on device"
