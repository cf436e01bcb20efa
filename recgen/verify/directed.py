"""Cases that always run, before any random one. Each is aimed at a fault that this kind of code is known to have.

A weak decay shows a lost initial state, which a strong one hides; a strong one shows an exponential taken before the
mask, which a weak one hides; ones in 16 bits over 600 tokens show a state that is not float32. Random cases alone
would find these late or not at all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from .case import Case
from .profile import Profile
from .strategies import runs


def directed(profile: Profile, form: str, backend: str, device: str = "cpu") -> list[Case]:
    """The directed cases of one form and backend, the most telling first."""
    small = backend == "triton" and device == "cpu"
    base = Case(
        form=form,
        backend=backend,
        device=device,
        B=1 if small else 2,
        H=1 if small else 2,
        T=20 if small else 50,
        K=8,
        V=6,
        chunk_size=16,
        initial=True,
    )
    found: dict[Case, None] = {}
    for change in _changes(profile, form, backend, small):
        if not profile.drivers:  # a gate kind would only repeat a case
            change = {**change, "gate": "mild", "log_decay": 0.0}
        case = profile.fitting(dataclasses.replace(base, **change))
        if runs(case, form):
            found.setdefault(case)
    return list(found)


def _changes(profile: Profile, form: str, backend: str, small: bool) -> Iterator[dict[str, Any]]:
    yield {"T": 37, "H": 2} if small else {}
    yield {"gate": "weak"}
    if form == "operator":  # it hands over to the other forms: only the handing over is new
        yield from ({"T": 1}, {"chunk_size": None, "dtype": "bfloat16"}, {"documents": (3, 0, 14)}, {"scale": -0.5})
        return
    yield from _telling(profile, form)
    yield from _decays(profile, small)
    yield from _losses()
    yield from _lengths(small)
    yield from _values(small)
    yield from _dtypes(profile, small)
    yield from _layouts(profile)
    yield from _splits(profile, form)
    yield from _schedules(profile, form, backend)
    yield {"H": 4, "groups": (1, 4, 2), "T": 18}
    yield {"scale": 0.0}
    yield {"scale": 1.0}
    yield {"K": 1, "V": 1}
    yield {"K": 19, "V": 33, "T": 18}
    yield {"H": 1, "B": 2 if small else 3, "T": 18}
    yield {"H": 3 if small else 7, "B": 1, "T": 18}


def _telling(profile: Profile, form: str) -> Iterator[dict[str, Any]]:
    """One case of each kind that follows."""
    yield {"gate": "strong"}
    yield {"chunk_size": None, "scale": -0.5}
    yield {"values": "low", "T": 20}
    yield {"T": 34, "split": 17, "then": form, "gate": "weak"}
    yield {"documents": (3, 0, 17, 1), "gate": "weak"}
    yield {"T": 1, "loss": "state", "gate": "weak"}
    yield {"layout": "fused", "grad_layout": "fused", "T": 20}
    yield {"dtype": "bfloat16"}
    yield {"H": 2, "groups": (2, 1), "T": 18}
    if profile.reset is not None:
        yield {"gate": "reset"}
    yield {"scale": 0.0}
    yield {"final": False}


def _decays(profile: Profile, small: bool) -> Iterator[dict[str, Any]]:
    if not profile.drivers:
        return
    for log_decay in (-1.4, -20.0, 0.0):
        yield {"gate": "constant", "log_decay": log_decay, "chunk_size": 64, "T": 20 if small else 70}
    for gate in ("zero", "negative_zero", "alternate", "every_16th", "one_channel"):
        yield {"gate": gate}
    if profile.reset is not None:
        yield {"gate": "reset"}
        yield {"gate": "reset_some", "chunk_size": 64}


def _losses() -> Iterator[dict[str, Any]]:
    for T in (1, 2, 33):
        yield {"T": T, "loss": "state", "gate": "weak"}
        yield {"T": T, "loss": "output", "gate": "weak"}
    yield {"final": False}
    yield {"initial": False, "T": 33}


def _lengths(small: bool) -> Iterator[dict[str, Any]]:
    for T in (0, 1, 15, 16, 17) if small else (0, 1, 15, 16, 17, 63, 64, 65, 129):
        yield {"T": T, "chunk_size": 16 if small else 64, "gate": "weak"}
    yield {"documents": (3, 0, 17, 1), "gate": "weak"}
    yield {"documents": (0, 0), "initial": True}
    yield {"documents": (0, 16, 5), "initial": False, "loss": "state"}


def _values(small: bool) -> Iterator[dict[str, Any]]:
    for values in ("zero", "ones", "small", "low", "lowest", "large"):
        yield {"values": values, "T": 20}
    if not small:
        yield {"values": "one_hot", "K": 128, "V": 128, "B": 1, "H": 1, "T": 20}


def _dtypes(profile: Profile, small: bool) -> Iterator[dict[str, Any]]:
    names = (*profile.inputs, *profile.params, "initial_state")
    counting = {"values": "ones", "gate": "constant", "log_decay": 0.0, "B": 1, "H": 1, "K": 1, "V": 1, "frozen": names}
    for dtype in ("bfloat16", "float16"):
        yield {"dtype": dtype}
        yield {"dtype": dtype, "mixed": True, "gate": "weak"}
    if not small:
        yield {"dtype": "bfloat16", **counting, "T": 600, "initial": False}
        yield {"dtype": "float64"}
        yield {"dtype": "float64", "gate": "weak", "values": "low", "T": 20}


def _layouts(profile: Profile) -> Iterator[dict[str, Any]]:
    for layout in ("fused", "transposed", "every_second", "expanded"):
        yield {"layout": layout, "grad_layout": layout, "T": 20}
    names = (*profile.inputs, *profile.params, "initial_state")
    yield {"frozen": names, "T": 20}
    for kept in (names[0], names[-2], names[-1]):
        yield {"frozen": tuple(name for name in names if name != kept), "T": 20}


def _splits(profile: Profile, form: str) -> Iterator[dict[str, Any]]:
    for n, then in enumerate(f for f in (*profile.forms, "naive") if f != "operator"):
        yield {"T": 34, "split": (1, 16, 17, 33)[n % 4], "then": then, "gate": "weak"}


def _schedules(profile: Profile, form: str, backend: str) -> Iterator[dict[str, Any]]:
    """Every cut of the kernels, whichever is chosen for sizes as small as these."""
    if form == "chunk" and backend == "triton":
        for schedule in getattr(profile.module, "SCHEDULES", ()):
            yield {"schedule": schedule, "T": 37, "H": 2, "gate": "weak"}
            yield {"schedule": schedule, "documents": (3, 0, 17), "gate": "weak"}
