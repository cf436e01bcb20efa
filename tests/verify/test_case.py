"""A case is a value: it prints, survives JSON, builds the same tensors every time, and runs as a script."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import recgen
from recgen.verify import Case, Profile, build
from recgen.verify.data import VALUES
from recgen.verify.gates import GATES
from recgen.verify.layouts import LAYOUTS

RICH = Case(form="chunk", T=9, H=2, K=3, V=5, gate="reset", layout="fused", initial=True, split=4, then="step", seed=3)


def test_a_case_survives_json() -> None:
    packed = Case(documents=(3, 0, 4), frozen=("q", "k"))
    for case in (RICH, packed, Case()):
        assert Case.from_settings(json.loads(json.dumps(case.settings()))) == case


def test_documents_fix_the_batch_and_the_length() -> None:
    case = Case(B=3, T=100, documents=(3, 0, 4))
    assert (case.B, case.T, case.sequences) == (1, 7, 3)


def test_without_a_final_state_only_the_output_has_a_gradient() -> None:
    assert Case(final=False, loss="state").loss == "output"


def test_the_same_case_builds_the_same_tensors(profile: Profile) -> None:
    one, two = build(profile, RICH), build(profile, RICH)
    assert all(torch.equal(one.tensors[name], two.tensors[name]) for name in profile.inputs)
    assert all(torch.equal(a, b) for a, b in zip(one.initial, two.initial, strict=True))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(2, 5, 3, 4), (1, 5, 3), (1, 1, 1, 1), (3,), (2, 0, 3, 4)])
def test_a_layout_keeps_the_values(layout: str, shape: tuple[int, ...]) -> None:
    x = torch.randn(shape)
    placed = LAYOUTS[layout](x)
    assert placed.shape == x.shape
    if layout != "expanded":
        assert torch.equal(placed, x)


def test_layouts_are_strided_as_they_say() -> None:
    x = torch.randn(2, 6, 3, 4)
    assert LAYOUTS["contiguous"](x).is_contiguous()
    assert LAYOUTS["fused"](x).stride(-2) == 9
    assert LAYOUTS["transposed"](x).transpose(1, 2).is_contiguous()
    assert LAYOUTS["every_second"](x).stride(1) == 24
    assert LAYOUTS["expanded"](x).stride(0) == 0
    assert LAYOUTS["expanded"](x[:1]).stride(1) == 0


@pytest.mark.parametrize("gate", GATES)
def test_every_gate_kind_gives_the_module_a_finite_output(profile: Profile, gate: str) -> None:
    data = build(profile, Case(B=2, T=20, H=2, gate=gate, log_decay=-2.0, dtype="float64"))
    o, state = profile.module.naive(**data.tensors, output_final_state=True)
    assert all(bool(x.isfinite().all()) for x in (o, *state))


def test_weak_gates_decay_by_up_to_two_percent(profile: Profile) -> None:
    gate = build(profile, Case(T=200, gate="weak", dtype="float64")).tensors["a"].detach().flatten()
    decays = [profile.log_decay(float(g)) for g in gate[:40]]
    assert -0.025 < min(decays) < -0.01
    assert max(decays) < 0


def test_resets_do_reset(profile: Profile) -> None:
    assert build(profile, Case(T=100, gate="reset")).tensors["a"].isinf().any()


@pytest.mark.parametrize("values", VALUES)
def test_values_reach_only_inputs_that_drive_no_decay(profile: Profile, values: str) -> None:
    case = Case(values=values)
    assert torch.equal(build(profile, case).tensors["a"], build(profile, Case()).tensors["a"])


def test_the_snippet_of_a_case_runs(profile: Profile, tmp_path) -> None:
    script = tmp_path / "failing.py"
    script.write_text(RICH.snippet(profile.path))
    found = {**os.environ, "PYTHONPATH": str(Path(recgen.__file__).parents[1])}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, env=found)
    assert done.returncode == 0, done.stderr
    assert "gradient initial 1" in done.stdout
    assert "relative error" in done.stdout
