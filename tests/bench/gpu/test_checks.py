"""The checks of one operator: which there are, and what counts as failed."""

from __future__ import annotations

import json
import math

import pytest

from recgen.bench.gpu.checks import cases, label, run, verdict
from recgen.bench.gpu.plan import REAL, CheckSizes
from recgen.verify.case import Case
from recgen.verify.check import Outcome
from recgen.verify.errors import Measure
from recgen.verify.profile import Profile, load_module
from recgen.verify.reference import References

from .conftest import GENERATED


def profile(name: str) -> Profile:
    return Profile.of(load_module(GENERATED / f"{name}.py"))


def test_each_schedule_of_the_chunk_form_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    gla = profile("gla")
    monkeypatch.setattr(gla.module, "SCHEDULES", ("fused", "split"))
    found = cases(gla, REAL.core, "cuda")
    assert {(c.form, c.schedule) for c in found} == {("chunk", "fused"), ("chunk", "split"), ("recurrent", "auto")}
    assert {c.dtype for c in found} == {"float32", "bfloat16"}
    assert {c.device for c in found} == {"cuda"} and {c.backend for c in found} == {"triton"}
    for schedule in ("fused", "split"):
        own = [c for c in found if c.schedule == schedule and c.dtype == "bfloat16"]
        assert {c.T for c in own if c.documents is None} == {1, 63, 100, 257}
        assert {c.gate for c in own} == {"mild", "weak", "strong"}
        assert any(c.documents for c in own) and {c.initial for c in own} == {True, False}
        assert all(c.final and c.loss == "both" for c in own)
    assert len({label(c) for c in found}) == len(found)


@pytest.mark.parametrize(("name", "width"), [("gla", 64), ("gla_outer", 64), ("full_gate", 16), ("mamba", 16)])
def test_where_a_token_has_a_number_for_each_key_and_value_the_definition_is_run_narrow(name: str, width: int) -> None:
    assert {c.K for c in cases(profile(name), REAL.core, "cuda")} == {width}


def test_an_operator_without_a_state_is_checked_in_the_form_that_it_has() -> None:
    found = cases(profile("linear_attention_global"), REAL.core, "cuda")
    assert {c.form for c in found} == {"chunk"} and not any(c.initial or c.final for c in found)


def test_the_schedule_reaches_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    simple = profile("simple_gla")
    case = Case(backend="triton", T=3, schedule="nonesuch", initial=True)
    refused = run(References(simple), case, (4,))
    said = "refused at every width: schedule: expected one of 'auto', 'fused', 'split', got 'nonesuch'"
    assert refused["reasons"] == [said] and not refused["ok"]


def test_the_first_width_that_the_kernels_take_counts() -> None:
    based = profile("based")
    sizes = CheckSizes((64, 4), (3,), B=1, H=1)
    case = cases(based, sizes, "cpu")[0]
    found = run(References(based), case, sizes.widths)
    assert found["ok"]
    assert Case.from_settings(found["case"]).K == 4


@pytest.mark.parametrize("error", [math.nan, math.inf, 0.2])
def test_what_is_not_finite_or_too_far_off_fails(error: float) -> None:
    found = verdict(Outcome(Case(), (Measure("output", error, 0.1),)))
    assert not found["ok"] and len(found["reasons"]) == 1
    json.dumps(found, allow_nan=False)


def test_nothing_compared_is_nothing_shown() -> None:
    assert verdict(Outcome(Case()))["reasons"] == ["nothing was compared"]
    assert verdict(Outcome(Case(), (Measure("output", 0.0, 0.1),)))["ok"]
