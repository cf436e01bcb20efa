"""The driver: right modules pass, wrong ones fail with a small case, a report says so and can be sent and printed."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType

import pytest

from recgen.verify import Case, Profile, Report, load_module, verify_module, verify_spec
from recgen.verify.driver import Options
from recgen.verify.interpreter import Interpreted
from recgen.verify.shrink import shrink, simpler

from .conftest import HANDMADE, broken

GENERATED = Path(__file__).resolve().parents[2] / "generated"


def test_a_right_module_is_verified(handmade: ModuleType) -> None:
    calls: list[tuple[int, int, str]] = []
    report = verify_module(handmade, ["chunk"], 5, 1, lambda *call: calls.append(call), directed=12)
    assert report.ok, report.render()
    assert report.cases == calls[-1][0] == calls[-1][1] == 12 + 5
    assert {(row.form, row.backend) for row in report.rows} == {("chunk", "torch")}
    assert {row.what for row in report.rows} == {"output", "state", "gradient"}


def test_a_wrong_module_fails_with_a_small_case(tmp_path: Path) -> None:
    module = broken(tmp_path, "(denominator + 1e-6)[..., None]", "(denominator.detach() + 1e-6)[..., None]")
    report = verify_module(module, ["chunk"], 0, 1)
    assert not report.ok
    case = report.failures[0].case
    assert case.T <= 2 and case.K == case.V == case.H == case.B == 1
    assert "gradient" in report.failures[0].reasons[0]
    assert "FAILED" in report.render() and "importlib" in report.render()


def test_random_cases_find_a_fault_and_make_it_small(tmp_path: Path) -> None:
    line = "    length = r.shape[1]\n"
    module = broken(tmp_path, line, line + "    x = x * (1.5 if length > 20 else 1)\n")
    report = verify_module(module, ["chunk"], 60, 3, directed=0, small_seconds=30)
    assert [failure.origin for failure in report.failures] == ["random"]
    case = report.failures[0].case
    assert (case.T, case.K, case.V, case.layout) == (21, 1, 1, "contiguous")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("        inner = make(", "        x.data += 0.1\n        inner = make(", "input x was changed in place"),
        ("return o, state if output_final_state else None", "return o, state", "returned unasked"),
        ("return o, state if output_final_state else None", "return o, None", "no final state was returned"),
        ("        inner = make(", "        raise KeyError('S')\n        inner = make(", "KeyError"),
    ],
)
def test_broken_promises_are_named(tmp_path: Path, old: str, new: str, says: str) -> None:
    text = HANDMADE.read_text()
    broken_form = text[text.index("def _public(make):") : text.index("naive = _public(")].replace("_public", "_broken")
    assert old in broken_form
    path = tmp_path / "broken.py"
    path.write_text(
        text.replace("naive = _public(", broken_form.replace(old, new) + "naive = _public(").replace(
            "chunk = _public(", "chunk = _broken("
        )
    )
    report = verify_module(load_module(path), ["chunk"], 0, 1, fail_fast=True)
    assert not report.ok
    assert says in report.render()


def test_a_form_that_the_module_lacks_is_a_value_error(handmade: ModuleType) -> None:
    with pytest.raises(ValueError, match="butterfly"):
        verify_module(handmade, ["butterfly"])


def test_a_budget_ends_the_work_and_says_what_is_left(handmade: ModuleType) -> None:
    report = verify_module(handmade, ["chunk", "step"], 7, 1, budget=0)
    assert report.cases == 0 and not report.ok, "nothing was tried, so nothing is verified"
    assert set(report.unreached) == {"chunk on torch", "step on torch", "random inputs on torch"}
    assert report.unreached["random inputs on torch"] == 2 * 7
    assert "not reached: " in report.render() and "nothing was run" in report.render()
    assert not report.never_ran, "what there was no time for was not refused"


def test_every_form_has_its_turn_before_the_budget_ends(handmade: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr("recgen.verify.driver.time.time", lambda: next(clock))
    report = verify_module(handmade, ["chunk", "parallel", "step"], 5, 1, budget=6)
    assert {row.form: row.measures for row in report.rows if row.what == "output"} == {
        "chunk": 2,
        "parallel": 2,
        "step": 2,
    }
    assert report.ok
    assert "no failure in what was reached" in report.render()


def test_a_report_survives_json(tmp_path: Path) -> None:
    module = broken(tmp_path, "inside = row[:, None] >=", "inside = row[:, None] >")
    report = verify_module(module, ["chunk"], 0, 1, fail_fast=True)
    assert not report.ok
    again = Report.from_dict(json.loads(json.dumps(report.as_dict())))
    assert again == report
    assert again.render() == report.render()


def test_shrinking_takes_away_everything_that_does_not_matter() -> None:
    case = Case(B=3, T=70, H=3, K=8, V=6, gate="strong", chunk_size=16, initial=True, scale=-0.5)
    small = shrink(case, lambda c: c.T >= 33 and c.initial, lambda: False)
    assert small == Case(T=33, K=1, V=1, initial=True, final=False)


def test_simpler_cases_differ_and_keep_a_split_inside() -> None:
    case = Case(T=10, split=9, then="chunk")
    assert case not in list(simpler(case))
    assert all(c.split is None or c.split <= c.T for c in simpler(case))


def test_a_spec_is_loaded_and_verified(handmade: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recgen.loader.load", lambda spec: {"any.yaml": handmade}[spec])
    assert verify_spec("any.yaml", forms=["step"], examples=0, directed=1).ok


@pytest.mark.interpreter
def test_kernels_are_verified_in_a_process_that_interprets_them(tmp_path: Path) -> None:
    calls: list[tuple[int, int, str]] = []
    profile = Profile.of(load_module(GENERATED / "linear_attention.py"))
    options = asdict(Options(forms=("chunk",), backends=("triton",), examples=0, directed=2))
    report = Interpreted.start(profile, options, lambda *call: calls.append(call)).result()
    assert report.ok, report.render()
    assert {(row.form, row.backend) for row in report.rows} == {("chunk", "triton")}
    assert report.cases == sum(done for done, _, _ in calls) == sum(expected for _, expected, _ in calls) == 2


def test_a_process_that_dies_says_why(profile: Profile, tmp_path: Path) -> None:
    lost = replace(profile, path=str(tmp_path / "lost.py"))
    with pytest.raises(RuntimeError, match=r"no Python module at .*lost\.py"):
        Interpreted.start(lost, asdict(Options()), lambda *call: None).result()
