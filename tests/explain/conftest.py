"""Operators derived once for all tests of what is said about them."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import pytest

from recgen.algebra.derive import Derivation, derive
from recgen.plan.kernels import Plan
from recgen.plan.passes import plan
from recgen.resources import catalogue
from recgen.spec import read


class Made(NamedTuple):
    found: Derivation
    plan: Plan


@cache
def made(name: str) -> Made:
    found = derive(read(catalogue()[name]), prove=False)
    return Made(found, plan(found))


@pytest.fixture(scope="session")
def operator() -> object:
    """operator("gla"): its derivation, without a proof, and its plan."""
    return made
