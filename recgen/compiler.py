"""The compiler, in the order it runs. This file is the map of the code.

    read      YAML + expression text   → Spec         recgen.spec       nothing evaluated, everything located
    derive    Spec                     → Derivation   recgen.algebra    symbolic: program, adjoint, bounds, proof
    plan      Derivation               → Plan         recgen.plan       kernels, what they keep, tiles; checked
    emit      Plan                     → source text  recgen.emit       deterministic, formatted
    load      source text              → module       recgen.loader     a file on disk, cached by content

Each stage is a function from one immutable value to the next, and each value can be printed (`recgen explain --stage`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from recgen.spec.model import Spec

if TYPE_CHECKING:
    from recgen.algebra.derive import Derivation
    from recgen.plan.kernels import Plan


def compile_spec(spec: Spec) -> str:
    """The text of the module that a spec describes. Raises SpecError, NotLowered or ProofError."""
    (text,) = compile_files(spec, spec.name).values()
    return text


def compile_files(spec: Spec, stem: str, *, with_test: bool = False, typed: bool = False) -> dict[str, str]:
    """File name → text: the module `stem`.py, and beside it its tests and its types where they are asked for.

    Raises what `compile_spec` raises.
    """
    from recgen.emit.module import module_text

    derivation, planned = _planned(spec)
    files = {f"{stem}.py": module_text(derivation, planned)}
    if typed:
        from recgen.emit.companions import stub_text

        files[f"{stem}.pyi"] = stub_text(derivation, planned)
    if with_test:
        from recgen.emit.companions import test_text

        files[f"test_{stem}.py"] = test_text(derivation, planned, stem)
    return files


def _planned(spec: Spec, prove: bool = True) -> tuple[Derivation, Plan]:
    """The stages derive and plan."""
    from recgen.algebra.derive import derive
    from recgen.plan.passes import plan

    derivation = derive(spec, prove=prove)
    return derivation, plan(derivation)


def explain(spec: Spec, stage: str = "derive", latex: bool = False) -> str:
    """One stage of a spec as readable text. stage: read, derive or plan; latex for read and derive."""
    if stage == "read":
        from recgen.algebra.mathtext import explain_spec

        return explain_spec(spec, latex=latex)
    if stage == "derive":
        from recgen.explain.document import explained

        return explained(*_planned(spec), "latex" if latex else "text").printed(latex)
    if stage == "plan":
        from recgen.plan.show import show_plan

        return show_plan(_planned(spec)[1])
    raise ValueError(f"stage {stage!r} is not one of read, derive, plan")


def explain_page(spec: Spec, out: Path) -> Path:
    """Writes the derive stage as one HTML file, with formulas and pictures, and returns the file."""
    from recgen.emit.module import module_text
    from recgen.explain.page import page
    from recgen.files import write_atomically
    from recgen.loader.modules import load_compiled

    derivation, planned = _planned(spec)
    module = load_compiled(spec, lambda _: module_text(derivation, planned))
    write_atomically(out, page(derivation, planned, module))
    return out


def trace(spec: Spec, function: str) -> str:
    """The emitted lines of a kernel or function beside the equations that they implement.

    Raises LookupError, naming those that there are.
    """
    from recgen.emit.trace import trace as traced
    from recgen.explain.lines import listing

    return listing(traced(*_planned(spec, prove=False)), function)


def compare(a: Spec, b: Spec, latex: bool = False) -> str:
    """What differs between two specs, as readable text."""
    from recgen.explain.compare import compared

    return compared(a, b, "latex" if latex else "text").printed(latex)
