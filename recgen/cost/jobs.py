"""One call of an emitted module, forward and backward, so that every kernel of a form is launched once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import isqrt
from typing import Any

import torch
from torch import Tensor

from recgen.verify.profile import Profile, load_module


@dataclass(frozen=True)
class Job:
    """A call of the module in the file `module`: its form, schedule, dtype and sizes.

    target     the GPU to compile for, a name of offline.TARGETS; "" where nothing is compiled
    documents  how many sequences of equal length are packed into the batch, or None for a plain batch
    """

    module: str
    mode: str
    target: str = ""
    schedule: str = "auto"
    dtype: str = "bfloat16"
    B: int = 1
    T: int = 64
    H: int = 1
    K: int = 64
    V: int = 64
    chunk_size: int | None = None
    documents: int | None = None


@cache
def profile(path: str) -> Profile:
    """What the module in the file says of itself."""
    return Profile.of(load_module(path))


def kernel_forms(profile: Profile) -> list[tuple[str, str]]:
    """Every (mode, schedule) of the module that launches kernels: the chunk form in each schedule, then the recurrent
    form. There is none where the module has no kernels."""
    if not profile.has_triton:
        return []
    forms = [("chunk", schedule) for schedule in profile.module.SCHEDULES] if "chunk" in profile.forms else []
    return forms + ([("recurrent", "auto")] if "recurrent" in profile.forms else [])


def keys_at(profile: Profile, width: int) -> int:
    """The most key channels, of those that come with this width, whose features are no more than `width`."""

    def features(keys: int) -> int:
        letters = profile.letters(1, 1, 1, keys, 1)
        return letters.get("M", letters["K"])

    even = 2 if "rotation" in profile.module.SPEC else 1  # channels turn in pairs
    choices = (width, width // 2, isqrt(width) - 1)
    return next((keys for keys in choices if keys and keys % even == 0 and features(keys) <= width), even)


def call(job: Job) -> None:
    """Forward, and backward for every input, parameter and the initial state, from zero gradients of all outputs. A
    step has no backward pass: it is taken from a state and, in place, from one in a pool."""
    about = profile(job.module)
    module, sizes = about.module, {"H": job.H, "K": job.K, "V": job.V}
    tensors = about.sample(B=job.B, T=job.T, **sizes, dtype=getattr(torch, job.dtype))
    if job.mode == "step":
        return _steps(about, tensors)
    options: dict[str, Any] = {"mode": job.mode, "backend": "triton", "chunk_size": job.chunk_size}
    if job.mode == "chunk":
        options["schedule"] = job.schedule
    if job.documents is not None:
        options["cu_seqlens"] = torch.arange(job.documents + 1) * job.T // job.documents
    if module.STATE:
        sequences = job.B if job.documents is None else job.documents
        options |= {"initial_state": _empty_state(about, tensors, sequences), "output_final_state": True}
    o, final = module.operator(**{name: x.requires_grad_() for name, x in tensors.items()}, **options)
    ends = [x for x in (o, *(final or ())) if x.requires_grad]  # a running maximum has no gradient
    torch.autograd.backward(ends, [torch.zeros_like(x) for x in ends])


def _steps(about: Profile, tensors: dict[str, Tensor]) -> None:
    """A token of each sequence, its state in the place of its number and in the one that a slot says."""
    token = {name: x[:, 0] if name in about.inputs else x for name, x in tensors.items()}
    sequences = next(iter(token.values())).shape[0]
    with torch.no_grad():
        state = _empty_state(about, tensors, sequences)
        about.module.step(**token, state=state, backend="triton")
        about.module.step(**token, state=state, backend="triton", slots=torch.arange(sequences))


def _empty_state(about: Profile, tensors: dict[str, Tensor], sequences: int) -> Any:
    """The state that `sequences` sequences start from, as something to differentiate by."""
    none = {
        name: x.narrow(about.axes(name).index("T"), 0, 0)[:1].repeat_interleave(sequences, 0)
        if name in about.inputs
        else x
        for name, x in tensors.items()
    }
    _, state = about.module.naive(**none, output_final_state=True)
    return type(state)(*(x.detach().requires_grad_(x.is_floating_point()) for x in state))
