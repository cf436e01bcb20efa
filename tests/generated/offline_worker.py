"""Compiles what emitted modules launch, in a process that has never seen Triton's interpreter.

    python -m tests.generated.offline_worker        jobs in, results out, one JSON line each

A job is what `job` gives; sizes are B T H K V. A result adds: error (text or null), seconds, and kernels: name, grid,
registers, spill, shared, launches, hash, tf32, narrow.
"""
from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch

from recgen.verify.offline import Compiled, Kernel, offline
from tests.generated.catalogue import ROOT, emitted
from tests.generated.inputs import draw, draw_state
from tests.generated.ir import narrow_products

Job = dict[str, Any]
Result = dict[str, Any]


def job(operator: str, target: str, mode: str, topic: str, sizes: dict[str, int], *, dtype: str = "float32",
        chunk_size: int | None = None, documents: int | None = None) -> Job:
    return {"operator": operator, "target": target, "mode": mode, "topic": topic, "dtype": dtype, "sizes": sizes,
            "chunk_size": chunk_size, "documents": documents}


def answers(batches: queue.SimpleQueue[list[Job]], folder: Path) -> list[Result]:
    """One worker process, fed until nothing is left."""
    env = {n: x for n, x in os.environ.items() if n != "TRITON_INTERPRET"}
    env |= {"TRITON_CACHE_DIR": str(folder / "triton"), "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "tests.generated.offline_worker"]
    found: list[Result] = []
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (open(folder / "stderr", "a") as errors,
          subprocess.Popen(command, cwd=ROOT, env=env, stderr=errors, **pipes) as worker):
        assert worker.stdin is not None and worker.stdout is not None
        while not batches.empty():
            for asked in batches.get():
                worker.stdin.write(json.dumps(asked) + "\n")
                worker.stdin.flush()
                line = worker.stdout.readline()
                assert line, f"the worker died on {asked}: {(folder / 'stderr').read_text()[-4000:]}"
                found.append(json.loads(line))
    return found


def launch(job: Job) -> None:
    """Forward, and backward for every input and the initial state, from gradients of output and final state; where
    nothing is carried, for every input from that of the output."""
    module = emitted(job["operator"])
    values = draw(module, **job["sizes"], dtype=getattr(torch, job["dtype"]))
    documents = job["documents"]
    T = job["sizes"]["T"]
    offsets = None if documents is None else torch.arange(documents + 1) * T // documents
    leaves = {n: x.requires_grad_() for n, x in values.items()}
    options: dict[str, Any] = {}
    if module.STATE:
        start = {n: x.requires_grad_() for n, x in draw_state(module, values, N=documents).items()}
        options = {"initial_state": module.State(**start), "output_final_state": True}
    o, final = module.operator(**leaves, **options, cu_seqlens=offsets, mode=job["mode"], backend="triton",
                               chunk_size=job["chunk_size"])
    ends = [x for x in (o, *(final or ())) if x.requires_grad]  # a maximum has no gradient
    torch.autograd.backward(ends, [torch.zeros_like(x) for x in ends])


def describe(kernel: Kernel) -> dict[str, Any]:
    machine = "ptx" if "ptx" in kernel.files else "amdgcn"
    text = kernel.text(machine)
    return {"name": kernel.name, "grid": kernel.grid[0], "hash": kernel.hash, "registers": kernel.registers,
            "spill": kernel.spill, "shared": kernel.shared, "launches": kernel.launches,
            "tf32": "tf32" in text or "xf32" in text, "narrow": narrow_products(kernel.text("ttir"))}


def work(job: Job) -> Result:
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
