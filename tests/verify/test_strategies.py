"""The random cases cover what they promise, and each is one that the module takes."""

from __future__ import annotations

from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from recgen.verify import Case, Profile, load_module
from recgen.verify.check import check
from recgen.verify.directed import directed
from recgen.verify.reference import References
from recgen.verify.strategies import INTERPRETER, TORCH, cases, runs

from .conftest import HANDMADE

PROFILE = Profile.of(load_module(HANDMADE))
QUICK = settings(max_examples=2000, database=None, deadline=None, suppress_health_check=list(HealthCheck))


@given(case=cases(PROFILE))
@settings(max_examples=150, database=None, deadline=None)
def test_sizes_stay_within_their_limits(case: Case) -> None:
    assert 0 <= case.T <= TORCH.T
    assert 1 <= case.K <= TORCH.width and 1 <= case.V <= TORCH.width
    assert case.B >= 1 and case.H >= 1
    assert case.split is None or 0 <= case.split <= case.T
    assert case.B * case.H * case.T * case.K * case.V <= TORCH.work or case.documents is not None


@given(case=cases(PROFILE, "triton"))
@settings(max_examples=100, database=None, deadline=None)
def test_the_interpreter_gets_small_cases_in_dtypes_it_has(case: Case) -> None:
    assert case.B * case.H * case.T * case.K * case.V <= INTERPRETER.work or case.documents is not None
    assert case.dtype != "float64"


def test_awkward_cases_are_all_drawn() -> None:
    """Each is found by search, so each can be drawn."""
    for wanted in (
        lambda c: c.T == 0,
        lambda c: c.T > 200 and c.T % 16 != 0,
        lambda c: c.K != c.V and c.K > 64,
        lambda c: c.documents is not None and 0 in c.documents,
        lambda c: c.gate == "reset" and c.initial,
        lambda c: c.gate == "negative_zero",
        lambda c: c.layout == "expanded" and c.grad_layout == "transposed",
        lambda c: c.dtype == "bfloat16" and c.mixed,
        lambda c: c.scale == 0.0,
        lambda c: c.split is not None and 0 < c.split < c.T and c.then == "step",
        lambda c: c.loss == "state" and c.final,
        lambda c: "initial_state" in c.frozen,
    ):
        assert wanted(find(cases(PROFILE), wanted, settings=QUICK))


@given(case=cases(PROFILE), form=st.sampled_from(PROFILE.forms))
@settings(max_examples=12, database=None, deadline=None, derandomize=True)
def test_a_right_module_passes_any_case(case: Case, form: str) -> None:
    if runs(case, form):
        outcome = check(References(PROFILE), Case.from_settings({**case.settings(), "form": form}))
        assert outcome.ok, outcome.reasons()


def test_directed_cases_are_distinct_and_complete() -> None:
    found = directed(PROFILE, "chunk", "torch")
    assert len(found) == len(set(found)) > 50
    for wanted in ("reset", "strong", "weak", "every_16th", "one_channel"):
        assert any(case.gate == wanted for case in found)
    assert {case.then for case in found} >= {"", "chunk", "recurrent", "parallel", "step", "naive"}
    assert any(case.loss == "state" and case.T == 1 for case in found)
