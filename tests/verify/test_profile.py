"""What the verifier learns from a module: by its tables and by measurement, never by the operator's name."""

from __future__ import annotations

import math
from types import ModuleType

import pytest

from recgen.verify import Profile, load_module


def test_the_drivers_of_the_decay_are_the_names_in_its_expression(profile: Profile) -> None:
    assert profile.drivers == ("a",)
    assert profile.gates == ("a",)


def test_a_decay_without_inputs_is_driven_by_its_parameters(handmade: ModuleType) -> None:
    class Learned:
        SPEC = {"name": "learned", "decay": {"log": "-exp(c)"}}
        INPUTS, PARAMS, STATE = handmade.INPUTS, handmade.PARAMS, handmade.STATE
        sample_inputs, naive, chunk = handmade.sample_inputs, handmade.naive, handmade.chunk
        __file__ = handmade.__file__

    assert Profile.of(Learned).drivers == ("c",)
    assert Profile.of(Learned).forms == ("chunk",)
    assert Profile.of(Learned).reset is None


@pytest.mark.parametrize("log_decay", [-0.001, -0.02, -1.4, -20.0])
def test_a_gate_value_is_found_for_any_strength_of_decay(profile: Profile, log_decay: float) -> None:
    assert profile.log_decay(profile.level(log_decay)) == pytest.approx(log_decay, rel=2e-3)


def test_no_decay_at_all_is_exactly_one(profile: Profile) -> None:
    assert profile.log_decay(profile.level(0.0)) == 0.0


def test_the_infinite_gate_that_forgets_everything_is_found(profile: Profile) -> None:
    assert profile.reset == -math.inf


def test_a_module_without_triton_has_only_torch_forms(profile: Profile) -> None:
    assert {backend for _, backend in profile.pairs()} == {"torch"}


def test_a_missing_file_is_an_import_error(tmp_path) -> None:
    with pytest.raises(ImportError, match="no Python module"):
        load_module(tmp_path / "nothing.py")
