"""Verification is not blind: it finds every fault that a mutant puts into emitted code, and none in the code itself.

One operator has a gate, features, a scale and a normaliser, so that nearly every fault makes sense in it; those of the
pairwise factorisation are put into `gla`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from recgen.compiler import compile_spec
from recgen.spec import read_text
from recgen.verify import Report, load_module, verify_module
from recgen.verify.mutants import MUTANTS, SHARED_MUTANTS, TORCH_MUTANTS, TRITON_MUTANTS, Mutant

GLA = Path(__file__).resolve().parents[2] / "generated" / "gla.py"
NORMALIZED = """
name: normalized_gate
inputs: {g: B T H}
decay: {type: gated, log: logsigmoid(g)}
feature_map: elu(x) + 1
normalizer: {kind: sum, eps: 1e-6}
scale: K ** -0.5
"""


@pytest.fixture(scope="session")
def sources() -> list[str]:
    return [compile_spec(read_text(NORMALIZED)), GLA.read_text(encoding="utf-8")]


def verify(source: str, backend: str, folder: Path, **options: object) -> Report:
    """The report on one emitted text: the chunk form, directed cases alone."""
    path = folder / "emitted.py"
    path.write_text(source, encoding="utf-8")
    return verify_module(load_module(path), ["chunk"], 0, 1, backends=(backend,), fail_fast=True, **options)


def killed(mutant: Mutant, backend: str, sources: list[str], folder: Path) -> None:
    texts = [text for text in map(mutant.apply, sources) if text is not None]
    assert texts, "the mutant finds nothing to change in any module"
    report = verify(texts[0], backend, folder)
    assert not report.ok, f"survived {report.cases} cases"
    reasons = report.failures[0].reasons
    assert not re.match(r"\w+Error", reasons[0]), f"the mutant does not even run: {reasons[0]}"


@pytest.mark.parametrize("mutant", TORCH_MUTANTS + SHARED_MUTANTS, ids=lambda mutant: mutant.name)
def test_a_fault_of_the_torch_path_is_found(mutant: Mutant, sources: list[str], tmp_path: Path) -> None:
    killed(mutant, "torch", sources, tmp_path)


@pytest.mark.interpreter
@pytest.mark.parametrize("mutant", TRITON_MUTANTS, ids=lambda mutant: mutant.name)
def test_a_fault_of_a_kernel_is_found(mutant: Mutant, sources: list[str], tmp_path: Path) -> None:
    killed(mutant, "triton", sources, tmp_path)


def test_the_emitted_code_itself_has_none(sources: list[str], tmp_path: Path) -> None:
    for source in sources:
        report = verify(source, "torch", tmp_path)
        assert report.ok, report.render()


@pytest.mark.interpreter
def test_the_emitted_kernels_themselves_have_none(sources: list[str], tmp_path: Path) -> None:
    report = verify(sources[0], "triton", tmp_path, directed=10)
    assert report.ok, report.render()


def test_mutants_are_told_apart_by_name_and_backend() -> None:
    assert len({(mutant.name, mutant.backend) for mutant in MUTANTS}) == len(MUTANTS) >= 30


def test_the_definition_is_never_mutated(sources: list[str]) -> None:
    """The text of the token loop is the same in every mutant."""
    for source in sources:
        start, end = source.index("def _token_step"), source.index("# The chunkwise form in torch")
        for mutant in MUTANTS:
            text = mutant.apply(source)
            assert text is None or source[start:end] in text
