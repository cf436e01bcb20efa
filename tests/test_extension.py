"""A decay that the catalogue does not have, from outside: a YAML file, a Python object. No file of recgen changes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch
import torch.nn.functional as F

import recgen
from recgen.algebra.derive import log_decay_bounds
from recgen.spec.families import load_families, unregister_family
from recgen.verify import verify_module

HYPERBOLIC = """\
name: hyperbolic
doc: One gate per token and head; forgets like 1 / (1 + x), with a heavier tail than a sigmoid
type: gated
inputs:
  g: B T H
constants:
  rate: 1
log: -log(1 + rate * softplus(g))
"""

FADING = """\
name: fading
title: Linear attention with a hyperbolic gate
decay: {family: ./hyperbolic.yaml, constants: {rate: 3}}
scale: K ** -0.5
"""

TWO_RATES = recgen.Family(
    name="two_rates",
    type="gated",
    per="key",
    inputs={"g": "B T H K"},
    params={"fast": {"axes": "H", "init": "0"}, "slow": {"axes": "H", "init": "-3"}},
    log="-(exp(slow) * softplus(g) + exp(fast) * relu(g) ** 2)",
    doc="A gate per token and key channel that forgets at one learned rate below zero and at another above it",
)


@pytest.fixture
def fading(tmp_path: Path) -> Path:
    (tmp_path / "hyperbolic.yaml").write_text(HYPERBOLIC, encoding="utf-8")
    (tmp_path / "fading.yaml").write_text(FADING, encoding="utf-8")
    return tmp_path / "fading.yaml"


@pytest.fixture
def two_rates() -> Iterator[recgen.Spec]:
    """A spec that uses the registered family by its name."""
    recgen.register_family(TWO_RATES)
    yield recgen.read_dict({"name": "blend", "decay": {"family": "two_rates"}, "scale": "K ** -0.5"})
    unregister_family("two_rates")


def generated(spec: recgen.Spec | Path, folder: Path) -> ModuleType:
    return recgen.load_file(recgen.generate(spec, folder / "out"))


def assert_decays_by(module: ModuleType, log_decay: torch.Tensor) -> None:
    """With one key and no write after the first token, the output fades by exp(ℓ) and by nothing else."""
    T = log_decay.shape[1]
    inputs = module.sample_inputs(B=1, T=T, H=2, K=4, V=4, dtype=torch.float64)
    k = inputs["k"].clone()
    k[:, 1:] = 0
    o, _ = module.operator(**inputs | {"q": torch.ones_like(k), "k": torch.ones_like(k) * (k != 0)}, scale=1.0)
    first = inputs["v"][:, :1] * torch.ones(1, T, 1, 1)
    faded = torch.exp(log_decay[:, 1:].cumsum(1))
    expected = torch.cat([torch.ones_like(faded[:, :1]), faded], 1).sum(-1, keepdim=True) * first
    torch.testing.assert_close(o, expected, rtol=1e-12, atol=1e-12)


def test_a_family_in_a_file_is_generated_and_decays_as_it_says(fading: Path, tmp_path: Path) -> None:
    module = generated(fading, tmp_path)
    assert module.INPUTS == {"q": "B T H K", "k": "B T H K", "v": "B T H V", "g": "B T H"}
    g = module.sample_inputs(B=1, T=70, H=2, K=4, V=4, dtype=torch.float64)["g"]
    log_decay = -torch.log1p(3 * F.softplus(g))
    assert_decays_by(module, log_decay[..., None].expand(-1, -1, -1, 4))


def test_a_family_in_a_file_is_verified(fading: Path, tmp_path: Path) -> None:
    report = verify_module(generated(fading, tmp_path), examples=5, seed=0, backends=("torch",))
    assert report.ok, report.render()


def test_a_registered_family_is_generated_and_decays_as_it_says(two_rates: recgen.Spec, tmp_path: Path) -> None:
    module = generated(two_rates, tmp_path)
    assert module.INPUTS["g"] == "B T H K" and module.PARAMS == {"fast": "H", "slow": "H"}
    assert torch.equal(module.Operator(H=2).slow.detach(), torch.full((2,), -3.0))
    inputs = module.sample_inputs(B=1, T=70, H=2, K=4, V=4, dtype=torch.float64)
    g = inputs["g"]
    fast, slow = (torch.exp(inputs[name])[:, None] for name in ("fast", "slow"))
    assert_decays_by(module, -(slow * F.softplus(g) + fast * F.relu(g) ** 2))


def test_a_registered_family_is_verified(two_rates: recgen.Spec, tmp_path: Path) -> None:
    report = verify_module(generated(two_rates, tmp_path), examples=5, seed=0, backends=("torch",))
    assert report.ok, report.render()


def test_a_new_family_runs_in_its_triton_kernels_too(two_rates: recgen.Spec, tmp_path: Path) -> None:
    module = generated(two_rates, tmp_path)
    inputs = {name: x.requires_grad_() for name, x in module.sample_inputs(B=1, T=37, H=1, K=8, V=8).items()}
    results = []
    for backend in ("torch", "triton"):
        o, _ = module.chunk(**inputs, backend=backend)
        results.append([o, *torch.autograd.grad(o.square().sum(), list(inputs.values()))])
    for torch_result, triton_result in zip(*results, strict=True):
        assert (torch_result - triton_result).norm() <= 5e-5 * torch_result.norm()


def test_what_follows_from_a_family_is_derived(fading: Path, two_rates: recgen.Spec) -> None:
    bounds = log_decay_bounds(recgen.read(fading))
    assert bounds is not None and (bounds.lo, bounds.hi) == (-math.inf, 0)
    assert "∂ℓ/∂g" in recgen.compiler.explain(two_rates)


def test_a_family_that_could_grow_is_refused(tmp_path: Path) -> None:
    (tmp_path / "hyperbolic.yaml").write_text(HYPERBOLIC.replace("-log", "log"), encoding="utf-8")
    (tmp_path / "fading.yaml").write_text(FADING, encoding="utf-8")
    with pytest.raises(recgen.SpecError, match=r"hyperbolic\.yaml:8:6: the log-decay can be positive"):
        recgen.read(tmp_path / "fading.yaml")


def test_the_families_are_not_known_to_recgen() -> None:
    known = load_families()
    assert not {"hyperbolic", "two_rates"} & set(known)
