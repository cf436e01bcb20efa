"""What a report says of what was compiled and counted, and how it is written out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from recgen.cost import report as reports
from recgen.cost.gather import Findings, Request
from recgen.cost.model import DEVICES, SHAPES
from recgen.cost.report import Report, inspect
from recgen.cost.table import duration, render
from recgen.cost.traffic import Counts, Line
from recgen.files import json_text

ROOT = Path(__file__).resolve().parents[2]
SIMPLE = str(ROOT / "generated" / "simple_gla.py")
LINE = Line(Counts(launches=1, programs=1), Counts(loaded=10_000, stored=2_800))


def compiled(name: str, **facts: Any) -> dict[str, Any]:
    usual = {"hash": name, "error": "", "launches": 1, "programs": 1, "grid": 1, "warps": 8, "stages": 1,
             "registers": 100, "spill": 0, "shared": 1024, "on": 2, "off": 0, "instructions": {"HMMA": 8},
             "tf32": False, "narrow": []}  # fmt: skip
    return {**usual, "name": name, **facts}


def report(
    monkeypatch: pytest.MonkeyPatch, *kernels: dict[str, Any], error: str | None = None, **request: Any
) -> Report:
    """The report on kernels that every form is said to launch."""

    def gather(request: Request, progress: object) -> Findings:
        result = {"error": error or next((k["error"] for k in kernels if k["error"]), None), "kernels": list(kernels)}
        findings = Findings()
        for form in request.forms:
            findings.counted[form] = {kernel["name"]: LINE for kernel in kernels}
            findings.compiled |= {(target, form): result for target in request.targets}
        return findings

    monkeypatch.setattr(reports, "gather", gather)
    return inspect(Request(**{"name": "simple_gla", "path": SIMPLE, "targets": ("sm_90",), **request}))


def test_a_report_without_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    found = report(monkeypatch, compiled("_forward"), compiled("_backward"))
    assert found.ok and [row.kernel.name for row in found.rows] == ["_forward", "_backward"]
    assert {row.bytes_per_token for row in found.rows} == {12_800}
    first, second = [total for total in found.totals if total.form == "fused"]
    assert (first.shape, second.shape) == SHAPES
    assert first.seconds is not None and first.seconds > first.floor
    tokens = 8 * 4096 * 16
    once = (3 * (3 * 64 + 1) + 2 * 64) * tokens * 2
    assert first.floor == pytest.approx(once / DEVICES["sm_90"].bandwidth)


def test_a_kernel_is_shown_once_and_counted_in_every_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recurrent form has the backward kernels of the chunk form."""
    found = report(monkeypatch, compiled("_backward"))
    assert [row.form for row in found.rows] == ["fused"]
    assert {total.form for total in found.totals} == {"fused", "split", "recurrent"}


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"spill": 12}, "sm_90: _forward (fused, width 64) spills 12 bytes per thread"),
        ({"off": 3, "on": 1}, "has 3 of 4 matrix products off the tensor cores"),
        (
            {"shared": 300_000, "error": "OutOfResources: x"},
            "needs 300,000 bytes of shared memory, and there are 232,448",
        ),
        ({"error": "CompilationError: at 3:4\n  why"}, "does not compile: CompilationError: at 3:4 why"),
        ({"narrow": ["%3 = arith.muli"]}, "multiplies in 32 bits for an address: %3 = arith.muli"),
    ],
)
def test_a_fault_is_named(monkeypatch: pytest.MonkeyPatch, facts: dict[str, Any], said: str) -> None:
    found = report(monkeypatch, compiled("_forward", **facts), compiled("_fine"))
    assert not found.ok and len(found.faults) == 1
    assert said in found.faults[0] and found.faults[0] in render(found)


def test_float32_products_are_off_the_tensor_cores_by_design(monkeypatch: pytest.MonkeyPatch) -> None:
    assert report(monkeypatch, compiled("_forward", on=0, off=2, instructions={}), dtype="float32").ok


def test_a_form_that_fails_has_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    found = report(monkeypatch, compiled("_forward", error="E: x", registers=-1), compiled("_fine"))
    assert {total.seconds for total in found.totals} == {None}
    assert "fails" in render(found)


def test_what_the_interpreter_cannot_run_is_compiled_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def gather(request: Request, progress: object) -> Findings:
        (form,) = request.forms
        compiled_once = {("sm_90", form): {"error": None, "kernels": [compiled("_forward")]}}
        return Findings(compiled_once, {form: {}}, {form: "InterpreterError: why"})

    monkeypatch.setattr(reports, "gather", gather)
    found = inspect(Request("simple_gla", SIMPLE, ("sm_90",), schedules=("fused",)))
    assert found.ok and found.rows[0].seconds is None and found.totals[0].seconds is None
    assert "fused, width 64 is not counted: InterpreterError: why" in render(found)


def test_a_call_that_is_refused_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    found = report(monkeypatch, error="ValueError: no", schedules=("fused",))
    assert found.faults == ("sm_90: fused, width 64 cannot be called: ValueError: no",)


def test_variants_of_a_kernel_are_one_row_with_the_worst_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    variants = [compiled("_sum", hash="a", registers=9, launches=2), compiled("_sum", hash="b", spill=4, registers=7)]
    (row,) = report(monkeypatch, *variants).rows
    assert (row.kernel.registers, row.kernel.spill, row.kernel.launches) == (9, 4, 3)
    assert "_sum (2 variants)" in render(report(monkeypatch, *variants))


def test_other_tiles_than_those_counted_are_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    found = report(monkeypatch, compiled("_forward", programs=4))
    assert found.rows[0].same_programs is False
    assert "~12,800" in render(found) and "~ counted with other tiles" in render(found)


def test_what_the_table_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    text = render(report(monkeypatch, compiled("_forward", instructions={"HGMMA": 2, "HMMA": 20}), targets=("sm_90",)))
    assert text.startswith("simple_gla on sm_90, bfloat16\n")
    assert "2 HGMMA, 20 HMMA" in text and "H100 SXM" in text and "a model, not a measurement" in text
    assert all(line == line.rstrip() for line in text.splitlines())


def test_json_has_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    found = json.loads(json_text(report(monkeypatch, compiled("_forward", spill=1)).as_dict()))
    assert found["ok"] is False and len(found["faults"]) == 1
    assert found["rows"][0]["kernel"]["instructions"] == {"HMMA": 8}


@pytest.mark.parametrize(("seconds", "text"), [(2.5, "2.5 s"), (0.0123, "12.3 ms"), (4.56e-6, "4.56 µs")])
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
