"""One spec of the space: refused with a located reason, or compiled, proven, and verified in every form.

    verdict = judge({"name": "mine", "decay": {…}})
    verdict.kind        "refused", "verified", "no value" or "failed"

Verified means: outputs, final state and the gradients of every input, parameter and initial state equal `naive` in
float64 on small shapes, alone, cut in two, packed, with decays that are mild, weak and strong; with `triton`, the
kernels too, in float32.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from recgen.errors import NOWHERE, NotLowered, SpecError
from recgen.spec import read_dict

from .case import Case
from .check import check
from .profile import Profile, load_module
from .reference import References
from .specs import pruned
from .strategies import runs

SpecDict = dict[str, Any]
BASE = Case(dtype="float64", B=2, T=20, H=2, K=5, V=3, chunk_size=16, initial=True)
CHANGES: tuple[dict[str, Any], ...] = (
    {},
    {"gate": "weak", "T": 19, "split": 7, "scale": -0.5, "B": 1},
    {"gate": "strong", "T": 18, "initial": False, "H": 3, "K": 2, "V": 4, "B": 1},  # learned decays: mild
    {"documents": (3, 0, 17, 1), "gate": "weak", "H": 1},
)
TRITON_CHANGES: tuple[dict[str, Any], ...] = (
    {"dtype": "float32", "B": 1},
    {"dtype": "float32", "documents": (3, 0, 17), "gate": "weak", "H": 1},
)


@dataclass(frozen=True)
class Verdict:
    """What became of a spec. `reasons`: of the refusal, or of the failure, one line each."""

    spec: SpecDict
    kind: str
    reasons: tuple[str, ...] = ()
    digest: str = ""

    @property
    def ok(self) -> bool:
        return self.kind != "failed"


def judge(spec: SpecDict, *, triton: bool = False) -> Verdict:
    """Take a spec as far as it goes. Only KeyboardInterrupt and the like pass through."""
    try:
        return _judged(spec, triton)
    except SpecError as error:
        unlocated = [problem.reason for problem in error.problems if not _is_located(problem)]
        if unlocated or not error.problems:
            return Verdict(spec, "failed", tuple(f"refused without a place: {reason}" for reason in unlocated))
        kind = "not lowered" if isinstance(error, NotLowered) else "refused"
        return Verdict(spec, kind, tuple(problem.reason for problem in error.problems))
    except Exception as error:
        return Verdict(spec, "failed", (f"{type(error).__name__}: {error}",))


def _is_located(problem: Any) -> bool:
    return problem.location != NOWHERE and problem.location.line > 0 and bool(problem.reason)


def _judged(content: SpecDict, triton: bool) -> Verdict:
    from recgen import compiler

    spec = read_dict(content)
    again = read_dict(spec.as_dict())
    if again.digest != spec.digest:
        return Verdict(content, "failed", ("reading the written spec gives another spec",), spec.digest)
    text = compiler.compile_spec(spec)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{spec.name}.py"
        path.write_text(text, encoding="utf-8")
        reasons = list(_compared(Profile.of(load_module(path)), triton))
    undefined = [reason for reason in reasons if reason.startswith("no value")]
    failed = [reason for reason in reasons if reason not in undefined]
    kind = "failed" if failed else "no value" if undefined else "verified"
    return Verdict(content, kind, tuple(failed or undefined), spec.digest)


def _compared(profile: Profile, triton: bool) -> Iterator[str]:
    """What is wrong, one line for each; `no value` where `naive` itself has none for the drawn inputs."""
    references = References(profile)
    for backend, changes in (("torch", CHANGES), ("triton", TRITON_CHANGES if triton else ())):
        forms = [form for form, of in profile.pairs() if of == backend and form != "operator"]
        for number, change in enumerate(changes):
            case = dataclasses.replace(BASE, backend=backend, **change)
            case = profile.fitting(case)
            if case.gate == "strong" and not profile.gates:  # a saturated parameter has no gradient to compare
                case = dataclasses.replace(case, gate="mild")
            truth = references.truth(case)
            missing = sorted(name for name, x in truth.items() if not bool(torch.isfinite(x).all()))
            if missing:
                yield f"no value for {', '.join(missing)} where inputs are drawn {case.gate}"
                continue
            for place, form in enumerate(forms):
                then = forms[(place + number + 1) % len(forms)] if case.split is not None or "split" in change else ""
                one = dataclasses.replace(case, form=form, split=change.get("split"), then=then)
                if runs(one, form):
                    yield from (f"{form} on {backend}: {reason}" for reason in check(references, one).reasons())


def smaller(spec: SpecDict, fails: Callable[[SpecDict], bool]) -> SpecDict:
    """A spec that still fails, with as few keys and as short expressions as single steps reach."""
    best = spec
    improved = True
    while improved:
        improved = False
        for candidate in map(pruned, _steps(best)):
            if fails(candidate):
                best, improved = candidate, True
                break
    return best


def _steps(spec: SpecDict) -> Iterator[SpecDict]:
    """The spec without one of its keys, without one input or parameter, or with one expression made plain."""
    for key, value in spec.items():
        if key == "name":
            continue
        yield {other: v for other, v in spec.items() if other != key}
        if isinstance(value, dict):
            for inner, text in value.items():
                rest = {other: v for other, v in value.items() if other != inner}
                if rest:
                    yield {**spec, key: rest}
                yield from ({**spec, key: {**value, inner: plain}} for plain in _plainer(inner, text))
        else:
            yield from ({**spec, key: plain} for plain in _plainer(key, value))


def _plainer(key: str, text: Any) -> Iterator[str]:
    """Parts of an expression that could stand for the whole."""
    if not isinstance(text, str) or key in ("type", "per", "kind", "bonus", "skip"):
        return
    for start, end in _parentheses(text):
        yield text[start + 1 : end]
        yield text[:start] + text[start + 1 : end] + text[end + 1 :]
    for operator in (" + ", " * ", " - ", " / ", ", "):
        pieces = text.split(operator)
        if len(pieces) > 1:
            yield from (piece for piece in pieces if piece.count("(") == piece.count(")"))


def _parentheses(text: str) -> list[tuple[int, int]]:
    opened: list[int] = []
    found = []
    for place, character in enumerate(text):
        if character == "(":
            opened.append(place)
        elif character == ")" and opened:
            found.append((opened.pop(), place))
    return found
