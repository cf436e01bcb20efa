"""The checks of one operator on the device: every form that has a kernel against `naive` in float64.

What is compared, and how far it may be off, is `recgen.verify`'s: outputs, final state, and the gradients of every
input, parameter and initial state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import Any

from recgen.bench.gpu.plan import CheckSizes
from recgen.verify.case import Case
from recgen.verify.check import Outcome, check
from recgen.verify.profile import TRITON_FORMS, Profile
from recgen.verify.reference import References

DTYPES = ("float32", "bfloat16")

NARROW = 16
"""The widest keys and values where each token brings its own number for every pair of them: `naive` holds them all."""

Unit = tuple[str, Callable[[], dict[str, Any]]]


def units(module: ModuleType, sizes: CheckSizes, device: str) -> Iterator[Unit]:
    """Each case with its label, as something to do."""
    profile = Profile.of(module)
    references = References(profile)
    for case in cases(profile, sizes, device):
        yield label(case), partial(run, references, case, widths(profile, sizes))


def cases(profile: Profile, sizes: CheckSizes, device: str) -> list[Case]:
    """Every form with a kernel, in each schedule and dtype, on lengths, documents, decays and initial states."""
    forms = [("chunk", schedule) for schedule in profile.module.SCHEDULES]
    forms += [(form, "auto") for form in TRITON_FORMS if form != "chunk"]
    width = widths(profile, sizes)[0]
    plain = Case(backend="triton", B=sizes.B, H=sizes.H, K=width, V=width, device=device, initial=True)
    found: dict[Case, None] = {}
    for dtype in DTYPES:
        for change in _changes(profile, sizes):
            for form, schedule in forms:
                if form in profile.forms:
                    case = replace(plain, dtype=dtype, form=form, schedule=schedule, **change)
                    found.setdefault(profile.fitting(case))
    return list(found)


def _changes(profile: Profile, sizes: CheckSizes) -> Iterator[dict[str, Any]]:
    yield from ({"T": length} for length in sizes.lengths)
    if sizes.documents:
        yield {"documents": sizes.documents, "gate": "weak" if profile.drivers else "mild"}
        yield {"T": sizes.usual, "initial": False}
        yield from ({"T": sizes.usual, "gate": gate} for gate in ("weak", "strong") if profile.drivers)


def widths(profile: Profile, sizes: CheckSizes) -> tuple[int, ...]:
    """The widths to try, the widest first."""
    tensors = (*profile.inputs.values(), *profile.params.values())
    if not any({"K", "V"} <= set(axes) for axes in tensors):
        return sizes.widths
    return tuple(width for width in sizes.widths if width <= NARROW) or (NARROW,)


def label(case: Case) -> str:
    """The case in few words, such as `chunk/fused float32 T=257 weak gate, no initial state`."""
    form = case.form if case.schedule == "auto" else f"{case.form}/{case.schedule}"
    length = f"T={case.T}" if case.documents is None else f"documents {' '.join(map(str, case.documents))}"
    gate = "" if case.gate == "mild" else f" {case.gate} gate"
    return f"{form} {case.dtype} {length}{gate}{'' if case.initial else ', no initial state'}"


def run(references: References, case: Case, widths: tuple[int, ...]) -> dict[str, Any]:
    """The verdict at the first width that the kernels take. One that they take at no width has failed."""
    for width in widths:
        outcome = check(references, references.profile.fitting(replace(case, K=width, V=width)))
        if not outcome.refused:
            break
    return verdict(outcome)


def verdict(outcome: Outcome) -> dict[str, Any]:
    """The outcome as a plain dict; an error that is not finite is None."""
    reasons = outcome.reasons()
    if outcome.refused:
        reasons.append(f"refused at every width: {outcome.refused}")
    elif not outcome.measures and not reasons:
        reasons.append("nothing was compared")
    return {
        "case": outcome.case.settings(),
        "ok": not reasons,
        "reasons": reasons,
        "measures": [
            {
                "name": m.name,
                "error": m.error if math.isfinite(m.error) else None,
                "allowed": m.allowed if math.isfinite(m.allowed) else None,
                "eager": m.eager,
                "ok": m.ok,
            }
            for m in outcome.measures
        ],
    }
