"""The first half of the demo: each operator of the catalogue generated, proven, verified and explained."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import recgen
from recgen import compiler
from recgen.resources import catalogue
from recgen.spec import Spec
from recgen.verify import Report, verify_module

OPERATORS = ("linear_attention", "retnet", "learned_decay", "simple_gla", "gla")
BACKENDS = ("torch",)
"""What the model is trained with. Triton's interpreter takes minutes; `recgen verify` and the test suite run it."""


@dataclass(frozen=True)
class Made:
    """One operator: its spec, the module made from it, what was derived on the way, and what the verification found.

    `text` is the spec's file, `derivation` the derive stage as LaTeX, `source` the module's file; `seconds` is what
    generating the module took, proof included.
    """

    spec: Spec
    text: str
    derivation: str
    source: str
    module: ModuleType
    report: Report
    seconds: float


def make(name: str, folder: Path, examples: int, progress: Callable[[float, str], None]) -> Made:
    """Generate `name` into `folder` and verify it; `progress(share, what)` says how far this is.

    Raises SpecError for a bad spec and ProofError when a proof fails.
    """
    path = catalogue()[name]
    spec = recgen.read(path)
    progress(0.0, f"{name}: deriving and proving")
    started = time.perf_counter()
    file = recgen.generate(spec, folder)
    seconds = time.perf_counter() - started
    progress(0.2, f"{name}: explaining")
    derivation = compiler.explain(spec, "derive", latex=True)
    module = recgen.load_file(file)

    def verified(done: int, total: int, what: str) -> None:
        progress(0.3 + 0.7 * min(1.0, done / max(1, total)), f"{name}: verifying {what}")

    report = verify_module(module, examples=examples, seed=0, progress=verified, backends=BACKENDS)
    progress(1.0, f"{name}: verified")
    text = path.read_text(encoding="utf-8")
    return Made(spec, text, derivation, file.read_text(encoding="utf-8"), module, report, seconds)
