"""What the templates need where every token reads the total: the two halves of a step, the forms, what is kept."""

from __future__ import annotations

from typing import Any

from recgen.algebra.recurrence import Recurrence
from recgen.plan.kernels import Plan

from .reference import Reference

FORMS_OF_TOTALS = [
    ("naive", "The definition: a loop over tokens that sums, then one that reads, differentiated by autograd."),
    ("parallel", "All pairs of tokens at once: quadratic in time; its backward pass is the chunkwise one."),
    ("chunk", "The sum over all tokens, then all that reads it: linear in time, matrix products inside a chunk."),
]


def halves(rec: Recurrence, ref: Reference) -> dict[str, Any]:
    """What a token adds to the sums, and how it reads them: the lines and arguments of two functions."""
    sums = [rule.name for rule in rec.states]
    found: dict[str, Any] = {"sums": sums, "write_lines": ref.write_lines, "read_lines": ref.read_lines}
    for half, used in (("write", ref.written), ("read", ref.read)):
        found[f"{half}_arguments"] = [*(ref.variables[k] for k in used), *sums]
        found[f"{half}_at_t"] = [*(ref.variables[k] + "[:, t]" * ref.in_time[k] for k in used), *sums]
    return found


def totals_kept(plan: Plan) -> list[str]:
    """The totals of the forward pass that the backward kernels read."""
    read = {n for k in plan.backward for n in k.totals}
    return [c.start.leaf.name for c in plan.program.carries if c.start in read]
