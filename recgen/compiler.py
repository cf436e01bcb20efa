"""The compiler, in the order it runs. This file is the map of the code.

    read      YAML + expression text   → Spec         recgen.spec       nothing evaluated, everything located
    derive    Spec                     → Derivation   recgen.algebra    symbolic: program, adjoint, bounds, proof
    plan      Derivation               → Plan         recgen.plan       kernels, what they keep, tiles; checked
    emit      Plan                     → source text  recgen.emit       deterministic, formatted
    load      source text              → module       recgen.loader     a file on disk, cached by content

Each stage is a function from one immutable value to the next, and each value can be printed (`recgen explain --stage`).
"""

from __future__ import annotations

from recgen.spec.model import Spec


def compile_spec(spec: Spec) -> str:
    """The text of the module that a spec describes. Raises SpecError, NotLowered or ProofError."""
    from recgen.algebra.derive import derive
    from recgen.emit.module import module_text
    from recgen.plan.passes import plan

    derivation = derive(spec)
    return module_text(derivation, plan(derivation))


def explain(spec: Spec, stage: str = "derive", latex: bool = False) -> str:
    """One stage of a spec as readable text. stage: read, derive or plan; latex for read and derive."""
    from recgen.algebra.mathtext import explain_derivation, explain_spec

    if stage == "read":
        return explain_spec(spec, latex=latex)
    from recgen.algebra.derive import derive

    derivation = derive(spec)
    if stage == "derive":
        return explain_derivation(
            derivation.recurrence,
            derivation.program,
            derivation.adjoint,
            derivation.bounds,
            derivation.factorisation,
            derivation.proof,
            latex=latex,
        )
    if stage == "plan":
        from recgen.plan.passes import plan
        from recgen.plan.show import show_plan

        return show_plan(plan(derivation))
    raise ValueError(f"stage {stage!r} is not one of read, derive, plan")
