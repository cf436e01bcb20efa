"""The random cases cover what they promise, and each is one that the module takes."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from recgen.verify import Case, Profile, load_module
from recgen.verify.check import check
from recgen.verify.directed import directed
from recgen.verify.reference import References
from recgen.verify.strategies import INTERPRETER, TORCH, cases, runs

from .conftest import HANDMADE

PROFILE = Profile.of(load_module(HANDMADE))


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


AWKWARD: dict[str, Callable[[Case], bool]] = {
    "no token": lambda c: c.T == 0,
    "long and ragged": lambda c: c.T > 200 and c.T % 16 != 0,
    "wide, K ≠ V": lambda c: c.K != c.V and c.K > 64,
    "an empty document": lambda c: c.documents is not None and 0 in c.documents,
    "a hard reset, and a state before it": lambda c: c.gate == "reset" and c.initial,
    "a gate of −0.0": lambda c: c.gate == "negative_zero",
    "expanded inputs": lambda c: c.layout == "expanded",
    "transposed gradients": lambda c: c.grad_layout == "transposed",
    "float32 gates beside bfloat16": lambda c: c.dtype == "bfloat16" and c.mixed,
    "a scale of 0": lambda c: c.scale == 0.0,
    "forms that hand over": lambda c: c.split is not None and 0 < c.split < c.T and c.then == "step",
    "a loss on the state alone": lambda c: c.loss == "state",
    "an initial state without gradient": lambda c: c.initial and "initial_state" in c.frozen,
}


def test_awkward_cases_are_all_drawn() -> None:
    missing = dict(AWKWARD)

    @given(case=cases(PROFILE))
    @settings(max_examples=600, database=None, deadline=None, derandomize=True)
    def draw(case: Case) -> None:
        for name in [name for name, wanted in missing.items() if wanted(case)]:
            del missing[name]

    draw()
    assert not missing


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
