"""A spec with mistakes in it is a spec or is refused where the mistake is, soon; what is read can be derived.

`RECGEN_FUZZ=10000 pytest tests/spec/test_mutated.py` tries that many, others each time, and compiles them.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings

from recgen.algebra.derive import derive
from recgen.compiler import compile_spec
from recgen.errors import ProofError, SpecError
from recgen.spec import Spec, read_text
from recgen.spec.families import read_family
from recgen.spec.source import Source
from tests.spec.mutations import FAMILIES, STRUCTURES, TEXTS, mutated
from tests.spec.test_any_text import reads_or_refuses

FUZZ = int(os.environ.get("RECGEN_FUZZ", "0"))


def examples(count: int) -> settings:
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(
        deadline=None, max_examples=FUZZ or count, derandomize=not FUZZ, database=None, suppress_health_check=checks
    )


@examples(200)
@given(STRUCTURES)
def test_any_structure(text: str) -> None:
    reads_or_refuses(lambda: read_text(text))


@examples(150)
@given(mutated(FAMILIES))
def test_a_family_with_mistakes(text: str) -> None:
    reads_or_refuses(lambda: read_family(Source("family.yaml", text)))


@examples(200)
@given(mutated())
def test_a_spec_with_mistakes(text: str) -> None:
    reads_or_refuses(lambda: read_text(text))


KNOWN = {read_text(text).digest for text in TEXTS.values()}


@examples(40)
@given(mutated())
def test_what_is_read_of_a_spec_with_mistakes_is_derived(text: str) -> None:
    try:
        spec = read_text(text)
    except SpecError:
        return
    if spec.digest not in KNOWN:
        derived_or_refused(spec)


def derived_or_refused(spec: Spec) -> None:
    """A long run compiles, which derives, plans and prints."""
    KNOWN.add(spec.digest)
    try:
        compile_spec(spec) if FUZZ else derive(spec)
    except SpecError as error:
        assert all(problem.location.file == spec.path for problem in error.problems)
    except ProofError as error:
        assert str(error)


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_the_mistakes_start_from_what_is_right(name: str) -> None:
    assert read_text(TEXTS[name]).name == name
