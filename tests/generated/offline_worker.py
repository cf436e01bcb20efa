"""Compiles what emitted modules launch, in a process that has never seen Triton's interpreter.

    python -m tests.generated.offline_worker        jobs in, results out, one JSON line each

A job: operator, target, mode, dtype, sizes (B T H K V), chunk_size or null, documents (a number, or null), backward.
A result adds: error (text or null), seconds, and kernels: name, registers, spill, shared, launches, hash, tf32, narrow.
"""
from __future__ import annotations

import json
import sys
import time
from typing import Any

import torch

from recgen.verify.offline import Compiled, Kernel, offline
from tests.generated.catalogue import emitted
from tests.generated.inputs import draw, draw_state
from tests.generated.ir import narrow_products


def launch(job: dict[str, Any]) -> None:
    """Forward, and backward for every input and the initial state, from gradients of output and final state; where
    nothing is carried, for every input from that of the output."""
    module = emitted(job["operator"])
    values = draw(module, **job["sizes"], dtype=getattr(torch, job["dtype"]))
    documents = job["documents"]
    T = job["sizes"]["T"]
    offsets = None if documents is None else torch.arange(documents + 1) * T // documents
    leaves = {n: x.requires_grad_(job["backward"]) for n, x in values.items()}
    options: dict[str, Any] = {}
    if module.STATE:
        start = {n: x.requires_grad_(job["backward"]) for n, x in draw_state(module, values, N=documents).items()}
        options = {"initial_state": module.State(**start), "output_final_state": True}
    o, final = module.operator(**leaves, **options, cu_seqlens=offsets, mode=job["mode"], backend="triton",
                               chunk_size=job["chunk_size"])
    if job["backward"]:
        ends = [x for x in (o, *(final or ())) if x.requires_grad]  # a maximum has no gradient
        torch.autograd.backward(ends, [torch.zeros_like(x) for x in ends])


def describe(kernel: Kernel) -> dict[str, Any]:
    machine = "ptx" if "ptx" in kernel.files else "amdgcn"
    text = kernel.text(machine)
    return {"name": kernel.name, "hash": kernel.hash, "registers": kernel.registers, "spill": kernel.spill,
            "shared": kernel.shared, "launches": kernel.launches, "tf32": "tf32" in text or "xf32" in text,
            "narrow": narrow_products(kernel.text("ttir"))}


def work(job: dict[str, Any]) -> dict[str, Any]:
    begin = time.perf_counter()
    error: str | None = None
    compiled: Compiled
    with offline(job["target"]) as compiled:
        try:
            launch(job)
        except Exception as problem:  # a kernel that fails in any way is a result, not the end of the others
            error = f"{type(problem).__name__}: {problem}"[:2000]
    kernels = [describe(kernel) for kernel in compiled.kernels.values()]
    return {**job, "error": error, "seconds": time.perf_counter() - begin, "kernels": kernels}


def main() -> None:
    for line in sys.stdin:
        print(json.dumps(work(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
