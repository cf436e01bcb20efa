"""What each kind of job does, as units that stand alone: a label and something that returns a plain dict."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any

import torch

from recgen.bench.gpu import checks, contenders
from recgen.bench.gpu.contenders import AUTO, FLOOR, PEER, SOFTMAX, Contender
from recgen.bench.gpu.peers import PEERS, NoPeer
from recgen.bench.gpu.plan import Extent, Job, Shape, at_batch
from recgen.bench.gpu.timing import Meter
from recgen.bench.gpu.tuning import compile_only, tune_briefly

DTYPE = torch.bfloat16
Unit = tuple[str, Callable[[], dict[str, Any]]]


def units(job: Job, module: ModuleType, extent: Extent, meter: Callable[[], Meter], device: str) -> Iterator[Unit]:
    """The units of a job; `meter` is made only where something is measured."""
    of_width = [shape for shape in extent.shapes if shape.D == job.width]
    if job.kind == "check":
        yield from checks.units(module, getattr(extent, job.part), device)
    elif job.kind == "compile":
        for shape in of_width:
            for schedule in contenders.schedules(module):
                yield f"{schedule} {shape}", partial(_compile, module, shape, schedule, device)
        if job.width == extent.decode.D:
            yield "one token", lambda: _compile_one_token(module, extent.decode, device)
    elif job.kind == "tune":
        compile_only(job.share, extent.shares)
        for shape in of_width:
            yield str(shape), partial(_compile_peer, job.operator, module, shape, device)
    elif job.kind == "time":
        yield str(job.shape), lambda: _time(job, module, extent.measure, meter(), device)
    else:

        def decode(at: Shape) -> dict[str, Any]:
            return _decode(module, at, extent.measure, meter(), device)

        for batch in extent.decode_batches:
            at = at_batch(extent.decode, batch)
            yield str(at), partial(decode, at)


def _compile(module: ModuleType, shape: Shape, schedule: str, device: str) -> dict[str, Any]:
    def once() -> None:
        contenders.operator(module, contenders.draw(module, shape, device, DTYPE), schedule).both()

    _patiently(once)
    return {}


def _compile_one_token(module: ModuleType, shape: Shape, device: str) -> dict[str, Any]:
    _one_token(module, shape, device)["recurrent"]()
    return {}


def _compile_peer(operator: str, module: ModuleType, shape: Shape, device: str) -> dict[str, Any]:
    _patiently(_peer(operator, module, contenders.draw(module, shape, device, DTYPE), shape).both)
    return {}


def _patiently(work: Callable[[], None], tries: int = 8) -> None:
    """Work that shares the device's memory with other processes."""
    for left in reversed(range(tries)):
        try:
            return work()
        except torch.OutOfMemoryError:
            if not left:
                raise
            torch.cuda.empty_cache()
            time.sleep(5)


def _peer(operator: str, module: ModuleType, tensors: dict[str, torch.Tensor], shape: Shape) -> Contender:
    if operator not in PEERS:
        raise NoPeer(f"flash-linear-attention has no function of the mathematics of {operator}")
    chosen = PEERS[operator]
    scale = contenders.profile_of(module).scale(shape.H, shape.D, shape.D)
    return contenders.peer(chosen.load(), chosen, tensors, scale)


def _time(job: Job, module: ModuleType, seconds: float, meter: Meter, device: str) -> dict[str, Any]:
    """Forward, and forward and backward, of all contenders in turn, and their memory."""
    shape = job.shape
    assert shape is not None
    notes: list[str] = []
    failed: list[str] = []
    tensors = contenders.draw(module, shape, device, DTYPE)
    makers: dict[str, Callable[[], Contender]] = {
        name: partial(contenders.operator, module, tensors, name) for name in contenders.schedules(module)
    }
    makers[SOFTMAX] = lambda: contenders.softmax(shape, device, DTYPE)
    makers[FLOOR] = lambda: contenders.floor(tensors, (shape.B, shape.T, shape.H, shape.D))
    if shape.D > contenders.SOFTMAX_WIDTH:
        makers.pop(SOFTMAX)
    if job.obstacle:
        notes.append(f"{PEER} is left out: {job.obstacle}")
    else:
        makers[PEER] = lambda: _peer(job.operator, module, tensors, shape)
    running: dict[str, Contender] = {}
    for name, make in makers.items():
        found = _try(name, make, notes, failed)
        if found is not None:
            running[name] = found
    return {
        "forward": meter.times({name: c.forward for name, c in running.items()}, seconds),
        "both": meter.times({name: c.both for name, c in running.items()}, seconds),
        "peak_bytes": {name: meter.peak(c.both) for name, c in running.items() if name != FLOOR},
        "difference": _difference(job.operator, tensors, running, notes),
        "notes": notes,
        "failed": failed,
    }


def _try(name: str, make: Callable[[], Contender], notes: list[str], failed: list[str]) -> Contender | None:
    """The contender after a first pass each way, or None and why: recgen's kernels may refuse, or not fit."""
    try:
        if name == PEER:
            tune_briefly()
        found = make()
        found.forward()
        found.both()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return found
    except torch.OutOfMemoryError:
        notes.append(f"{name}: out of memory")
    except NoPeer as why:
        notes.append(f"{name} is left out: {why}")
    except ValueError as refused:
        notes.append(f"{name}: refused: {refused}")
    except Exception as error:
        mine = name not in (SOFTMAX, FLOOR, PEER)
        (failed if mine else notes).append(f"{name}: {type(error).__name__}: {error}")
    torch.cuda.empty_cache()
    return None


def _difference(
    operator: str, tensors: dict[str, torch.Tensor], running: dict[str, Contender], notes: list[str]
) -> float | None:
    """How far the peer's output is from the operator's, where both run."""
    if PEER not in running or AUTO not in running:
        return None
    with torch.no_grad():
        theirs = PEERS[operator].finish(running[PEER].forward(), tensors)
    found = contenders.difference(running[AUTO].forward(), theirs)
    if math.isfinite(found):
        return found
    notes.append(f"{PEER}: its output and the operator's cannot be compared, for one is not finite")
    return None


def _one_token(module: ModuleType, shape: Shape, device: str) -> dict[str, Callable[[], Any]]:
    """`step`, and the recurrent form's kernel, for one token from a state."""
    tensors = contenders.draw(module, shape, device, DTYPE)
    profile = contenders.profile_of(module)

    def recurrent(initial: Any = None) -> Any:
        options = {"initial_state": initial, "output_final_state": True, "backend": "triton"}
        return module.recurrent(**tensors, **options)

    _, state = recurrent()
    token = {n: x.select(profile.axes(n).index("T"), 0) if n in profile.inputs else x for n, x in tensors.items()}
    return {"step": lambda: module.step(**token, state=state), "recurrent": lambda: recurrent(state)}


def _decode(module: ModuleType, shape: Shape, seconds: float, meter: Meter, device: str) -> dict[str, Any]:
    with torch.no_grad():
        try:
            return {"times": meter.times(_one_token(module, shape, device), seconds), "notes": [], "failed": []}
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            return {"times": {}, "notes": ["out of memory"], "failed": []}
