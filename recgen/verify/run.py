"""Running one form of a module on a case's data: outputs, final state, gradients, by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from .case import Case
from .data import Data
from .profile import TRITON_FORMS, Profile, accepted

States = tuple[Tensor, ...]
Results = dict[str, Tensor]
OUTPUT, STATE, GRADIENT = "output", "state", "gradient"


def kind(name: str) -> str:
    """`output`, `state` or `gradient`: the first word of a result's name."""
    return name.split(" ", 1)[0]


@contextmanager
def loud_memory() -> Iterator[None]:
    """torch.empty gives NaN, so that a cell that is read before it is written shows in the results."""
    before = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode("warn")  # not use_deterministic_algorithms, which imports the inductor: seconds
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(before)


def _times(profile: Profile, tensors: Mapping[str, Tensor], start: int, stop: int | None) -> dict[str, Tensor]:
    """The inputs cut to tokens start … stop; parameters as they are."""
    cut = {}
    for name, x in tensors.items():
        axes = profile.axes(name)
        axis = axes.index("T") if name in profile.inputs and "T" in axes else None
        cut[name] = x if axis is None else x.narrow(axis, start, (x.shape[axis] if stop is None else stop) - start)
    return cut


def _token(profile: Profile, tensors: Mapping[str, Tensor], t: int) -> dict[str, Tensor]:
    one = {}
    for name, x in tensors.items():
        axes = profile.axes(name)
        one[name] = x.select(axes.index("T"), t) if name in profile.inputs and "T" in axes else x
    return one


def _steps(
    profile: Profile, case: Case, tensors: Mapping[str, Tensor], tokens: int, initial: States
) -> tuple[Tensor, States]:
    """`step` once per token.

    A parameter goes to every call. Its gradients are summed in float64, so that only what `step` rounds is judged."""
    wide = {name: x.double() for name, x in tensors.items() if name not in profile.inputs}
    state = profile.module.State(*initial)
    outputs = []
    for t in range(tokens):
        token = _token(profile, tensors, t) | {name: x.to(tensors[name].dtype) for name, x in wide.items()}
        o, state = profile.module.step(**token, state=state, scale=case.scale)
        outputs.append(o)
    return (torch.stack(outputs, 1) if outputs else torch.zeros(())), tuple(state)


def _call(
    profile: Profile,
    case: Case,
    form: str,
    tensors: Mapping[str, Tensor],
    tokens: int,
    initial: States | None,
    data: Data,
    final: bool,
) -> tuple[Tensor, States | None]:
    if form == "step":
        if initial is None:  # what a sequence starts from that is given no state
            with torch.no_grad():
                _, initial = profile.module.naive(**_times(profile, tensors, 0, 0), output_final_state=True)
        o, state = _steps(profile, case, tensors, tokens, initial)
        if tokens == 0:
            o = torch.zeros_like(data.output_cotangent[:, :0])
        return o, state if final else None
    function = getattr(profile.module, form)
    options: dict[str, object] = {"scale": case.scale}
    options |= {"initial_state": initial, "output_final_state": final} if profile.state else {}
    if data.offsets is not None:
        options["cu_seqlens"] = data.offsets
    if case.chunk_size is not None:
        options.update(accepted(function, {"chunk_size": case.chunk_size}))
    if case.schedule != "auto":
        options.update(accepted(function, {"schedule": case.schedule}))
    if form in TRITON_FORMS or case.backend == "torch":
        options.update(accepted(function, {"backend": case.backend}))
    o, state = function(**tensors, **options)
    return o, None if state is None else tuple(state)


def _forward(profile: Profile, case: Case, data: Data) -> tuple[Tensor, States | None]:
    if case.split is None:
        return _call(profile, case, case.form, data.tensors, case.T, data.initial, data, case.final)
    head = _times(profile, data.tensors, 0, case.split)
    tail = _times(profile, data.tensors, case.split, None)
    first, carried = _call(profile, case, case.form, head, case.split, data.initial, data, True)
    rest, state = _call(profile, case, case.then, tail, case.T - case.split, carried, data, case.final)
    return torch.cat([first, rest], 1), state


def _results(profile: Profile, case: Case, data: Data, o: Tensor, state: States | None) -> Results:
    results = {OUTPUT: o.detach()}
    for name, s in zip(profile.state, state or (), strict=False):
        results[f"{STATE} {name}"] = s.detach()
    leaves = data.leaves()
    pairs = [(o, data.output_cotangent)] if case.loss in ("both", "output") else []
    if case.loss in ("both", "state"):
        pairs += list(zip(state or (), data.state_cotangents, strict=False))
    pairs = [(x, cotangent.to(x.dtype)) for x, cotangent in pairs if x.requires_grad]
    grads: Sequence[Tensor | None] = [None] * len(leaves)
    if leaves and pairs:
        outputs, cotangents = zip(*pairs, strict=True)
        grads = torch.autograd.grad(outputs, list(leaves.values()), cotangents, allow_unused=True)
    for (name, leaf), grad in zip(leaves.items(), grads, strict=True):
        results[f"{GRADIENT} {name}"] = torch.zeros_like(leaf) if grad is None else grad.detach()
    return results


def _every_head(profile: Profile, case: Case, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Inputs with a value for every head: those of a group read the same one."""
    axis = {name: profile.axes(name).index("H") for name in profile.heads(case.H, case.groups)}
    return {
        name: x.repeat_interleave(case.H // x.shape[axis[name]], axis[name]) if case.groups and name in axis else x
        for name, x in tensors.items()
    }


def run_form(profile: Profile, case: Case, data: Data) -> Results:
    """Run the case's form (or its two forms, the state carried over) forward and backward.

    Returns `output`, `state S`, …, `gradient q`, …, `gradient initial 0`, …; a gradient that autograd gives as None
    is zeros. Whatever the module raises passes through."""
    with loud_memory():
        o, state = _forward(profile, case, data)
        return _results(profile, case, data, o, state)


def run_naive(profile: Profile, case: Case, data: Data) -> Results:
    """Run `naive` over the whole sequence on `data`, whatever form the case names; the same names as `run_form`.

    What naive shares with the forms is kept out of it: documents are cut and shared heads repeated here, the default
    scale is the spec's, and a scale of 0, which careless code takes for none given, is the smallest one that is not."""
    if case.scale is None:
        case = dataclasses.replace(case, scale=profile.scale(case.H, case.K, case.V))
    elif case.scale == 0:
        case = dataclasses.replace(case, scale=1e-250)
    every = _every_head(profile, case, data.tensors)
    if case.documents is None:
        o, state = _call(profile, case, "naive", every, case.T, data.initial, data, True)
        return _results(profile, case, data, o, state if case.final else None)
    alone = dataclasses.replace(data, offsets=None)
    outputs, states, start = [data.output_cotangent[:, :0]], [], 0
    for n, length in enumerate(case.documents):
        own = None if data.initial is None else tuple(s[n : n + 1] for s in data.initial)
        tensors = _times(profile, every, start, start + length)
        o, state = _call(profile, case, "naive", tensors, length, own, alone, True)
        outputs.append(o)
        states.append(state or ())
        start += length
    state = tuple(torch.cat(parts) for parts in zip(*states, strict=True))
    return _results(profile, case, data, torch.cat(outputs, 1), state if case.final else None)
