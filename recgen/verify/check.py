"""The verdict on one case: every promise of the contract that can be read off one run of one form."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from .case import Case
from .data import Data
from .errors import Measure, relative_error, tolerance
from .reference import SIXTEEN_BIT, References
from .run import GRADIENT, STATE, Results, kind, run_form


@dataclass(frozen=True)
class Outcome:
    """Measures of one case, broken promises in words, and the reason if the module refused the case."""

    case: Case
    measures: tuple[Measure, ...] = ()
    problems: tuple[str, ...] = ()
    refused: str = ""

    @property
    def ok(self) -> bool:
        """Nothing out of tolerance and no promise broken."""
        return not self.problems and all(m.ok for m in self.measures)

    @property
    def worst(self) -> Measure | None:
        """The measure furthest out of tolerance (NaN first), or None."""
        return max(self.measures, key=lambda m: m.ratio, default=None)

    def reasons(self) -> list[str]:
        """Each failure as one line."""
        lines = list(self.problems)
        for m in sorted(self.measures, key=lambda m: -m.ratio):
            if not m.ok:
                error = "not finite" if math.isnan(m.error) else f"relative error {m.error:.2e}"
                lines.append(f"{m.name}: {error}, allowed {m.allowed:.2e}")
        return lines


def check(references: References, case: Case) -> Outcome:
    """Run the case and judge it. An exception of the module is a problem, except where it may refuse."""
    profile = references.profile
    case = profile.fitting(case)
    data = references.data(case)
    before = data.map(torch.clone)
    try:
        found = run_form(profile, case, data)
    except Exception as error:
        if _may_refuse(case, error):
            return Outcome(case, refused=str(error))
        return Outcome(case, problems=(f"{type(error).__name__}: {error}",))
    problems = [*_promises(case, data, before, found), *_dense_differs(references, case, data, found)]
    return Outcome(case, tuple(_measures(references, case, found)), tuple(problems))


def _may_refuse(case: Case, error: Exception) -> bool:
    """A Triton form may refuse a size or a dtype with a ValueError; that every case is refused is found elsewhere."""
    return case.backend == "triton" and isinstance(error, ValueError)


def _measures(references: References, case: Case, found: Results) -> list[Measure]:
    measures, doubtful = [], {}
    for name, truth in references.truth(case).items():
        error = relative_error(found[name], truth) if name in found else math.nan
        always = tolerance(case.dtype, name)
        if error <= always:
            measures.append(Measure(name, error, always))
        else:
            doubtful[name] = error
    plainly_wrong = [m for m in (_plainly_wrong(references, case, n, e) for n, e in doubtful.items()) if m is not None]
    if plainly_wrong:
        return measures + plainly_wrong  # whether the others are wrong too would take long to tell
    judged = (_judged(references, case, name, error) for name, error in doubtful.items())
    return measures + [m for m in judged if m is not None]


def _plainly_wrong(references: References, case: Case, name: str, error: float) -> Measure | None:
    """A measure so far out that no luck of the eager reference's roundings could explain it, or None."""
    always, eager = tolerance(case.dtype, name), references.allowance(case, name, samples=0)
    if eager < torch.finfo(case.torch_dtype).eps:  # an error too small to be typical: the numbers happen to be exact
        eager = references.allowance(case, name, samples=1)
    allowed = max(always, eager)
    many = references.truth(case)[name].numel() >= 16
    wrong = math.isfinite(allowed) and (math.isnan(error) or (many and error > 1000 * allowed))
    return Measure(name, error, allowed, allowed > always) if wrong else None


def _judged(references: References, case: Case, name: str, error: float) -> Measure | None:
    """A measure beyond its dtype's tolerance, judged by the eager reference; None where that overflows as well."""
    always = tolerance(case.dtype, name)
    allowed = max(always, references.allowance(case, name))
    if math.isinf(allowed):
        return None if case.dtype == "float16" else Measure(name, error, always)
    if case.dtype in SIXTEEN_BIT and 8 * always < error <= allowed:
        # an eager loop that keeps its state in 16 bits is too lenient a judge of long sequences
        allowed = max(always, min(allowed, references.allowance(case, name, wide_state=True)))
    return Measure(name, error, allowed, allowed > always)


def _promises(case: Case, data: Data, before: Data, found: Results) -> list[str]:
    """dtypes of states and gradients, and inputs left as they were."""
    problems = []
    for name, x in found.items():
        if kind(name) == STATE and x.dtype != (promised := case.state_dtype(name.removeprefix(f"{STATE} "))):
            problems.append(f"{name} is {x.dtype}, not {promised}")
    for name, leaf in data.leaves().items():
        grad = found[f"{GRADIENT} {name}"]
        if grad.dtype != leaf.dtype or grad.shape != leaf.shape:
            problems.append(f"{GRADIENT} {name} is {grad.dtype} {tuple(grad.shape)}, its input {leaf.dtype}")
    states = [name for name in found if kind(name) == STATE]
    if bool(states) != case.final:
        problems.append("no final state was returned" if case.final else "a final state was returned unasked")
    for name, x in data.tensors.items():
        if not _same(x, before.tensors[name]):
            problems.append(f"input {name} was changed in place")
    for s, old in zip(data.initial or (), before.initial or (), strict=True):
        if not _same(s, old):
            problems.append("initial_state was changed in place")
    return problems


def _same(x: torch.Tensor, y: torch.Tensor) -> bool:
    return x.shape == y.shape and bool(torch.equal(x.detach().nan_to_num(), y.detach().nan_to_num()))


def _dense_differs(references: References, case: Case, data: Data, found: Results) -> list[str]:
    """Strided inputs and output gradients must give what contiguous copies give, to the bit.

    Not the gradients of `step` and `naive`: they are torch's own autograd, whose reductions follow strides."""
    if case.layout == case.grad_layout == "contiguous":
        return []
    plain = run_form(references.profile, case, data.dense())
    by_autograd = {"step", "naive"} & {case.form, case.then}
    return [
        f"{name} differs from that of contiguous copies of the inputs"
        for name, x in found.items()
        if not (by_autograd and kind(name) == GRADIENT) and not _same(x, plain[name])
    ]
