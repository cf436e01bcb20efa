"""The catalogue's operators, derived once without their proofs."""

from __future__ import annotations

from functools import cache

import pytest

from recgen.algebra.derive import Derivation, derive
from recgen.plan.kernels import Plan
from recgen.plan.passes import plan
from recgen.resources import specs_dir
from recgen.spec import read

NAMES = sorted(p.stem for p in specs_dir().glob("*.yaml"))
TOTALS = ("linear_attention_global",)


@cache
def derivation_of(name: str) -> Derivation:
    return derive(read(specs_dir() / f"{name}.yaml"), prove=False)


@cache
def plan_of(name: str) -> Plan:
    return plan(derivation_of(name))


@pytest.fixture(params=NAMES)
def derivation(request: pytest.FixtureRequest) -> Derivation:
    return derivation_of(request.param)


@pytest.fixture(params=NAMES)
def planned(request: pytest.FixtureRequest) -> Plan:
    return plan_of(request.param)


@pytest.fixture(params=[name for name in NAMES if name not in TOTALS])
def carried(request: pytest.FixtureRequest) -> Plan:
    """The plans whose kernels hand something on along time."""
    return plan_of(request.param)
