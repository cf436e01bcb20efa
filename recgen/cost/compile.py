"""What one call launches, compiled for a GPU that is not here: a process of its own, since Triton must not have been
imported for its interpreter.

    with compiler() as worker:
        result = worker.ask(asdict(Job(path, "chunk", "sm_90")))

A result says `error` (text, or null where everything compiled), `seconds`, Triton's version as `triton`, and of each
kernel, in order of launch:

    name, hash, error, launches, programs, grid, warps, stages, registers, spill, shared
    on, off, instructions    its matrix products: see products.py
    tf32                     whether a product rounds its operands to TF32
    narrow                   address products that could overflow 32 bits: see addresses.py
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from recgen.verify.offline import Compiled, Kernel, offline

from .addresses import narrow_products
from .jobs import Job, call
from .process import Worker, serve
from .products import machine_code, products

Result = dict[str, Any]

_PASS = re.compile(r"Pipeline failed while executing \[`(\w+)`")


def compiler(**options: Any) -> Worker:
    """A process that compiles jobs, given as dicts, which may also have `save` and `disassemble` of `compile_job`."""
    return Worker("recgen.cost.compile", interpret=False, **options)


def compile_job(job: Job, save: Path | None = None, disassemble: bool = True) -> Result:
    """Compile every kernel that the call launches, whatever fails on the way. `save` is a folder for the code.

    disassemble: count instructions in NVIDIA's machine code, which takes as long as compiling a small kernel.
    """
    begin, problem = time.perf_counter(), None
    compiled: Compiled
    with _standard_error() as said, offline(job.target, keep_going=True) as compiled:
        try:
            call(job)
        except Exception as error:  # a call that is refused is a result, not the end of the others
            problem = f"{type(error).__name__}: {error}"
    passes = _PASS.findall("".join(said))
    kernels = [_facts(kernel, passes, disassemble) for kernel in compiled.kernels.values()]
    if save is not None:
        _save(compiled, save)
    problem = problem or next((f"{k['name']}: {k['error']}" for k in kernels if k["error"]), None)
    seconds = time.perf_counter() - begin
    return {"error": problem and problem[:2000], "seconds": seconds, "triton": version("triton"), "kernels": kernels}


def _facts(kernel: Kernel, passes: list[str], disassemble: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        name: getattr(kernel, name)
        for name in ("name", "hash", "launches", "programs", "warps", "stages", "registers", "spill", "shared")
    }
    found |= {"error": kernel.error, "grid": kernel.grid[0], "on": 0, "off": 0, "instructions": None}
    if kernel.error and "PassManager" in kernel.error and passes:
        found["error"] += f" in {passes.pop(0)}"
    if not kernel.files:
        return found | {"tf32": False, "narrow": []}
    if kernel.hash not in _read:
        text = kernel.text("ptx" if "ptx" in kernel.files else "amdgcn")
        _read[kernel.hash] = {
            **vars(products(kernel, machine_code(kernel) if disassemble else None)),
            "tf32": "tf32" in text or "xf32" in text,
            "narrow": narrow_products(kernel.text("ttir")),
        }
    return found | _read[kernel.hash]


_read: dict[str, dict[str, Any]] = {}
"""What is read from a kernel's code, by its hash: jobs share kernels."""


def _save(compiled: Compiled, folder: Path) -> None:
    """NAME.ptx and NAME.sass, or NAME.amdgcn; a further variant of a kernel is NAME-2."""
    folder.mkdir(parents=True, exist_ok=True)
    names: Counter[str] = Counter()
    for kernel in compiled.kernels.values():
        if not kernel.files:
            continue
        names[kernel.name] += 1
        stem = kernel.name if names[kernel.name] == 1 else f"{kernel.name}-{names[kernel.name]}"
        code = machine_code(kernel)
        texts = {"amdgcn": code} if "amdgcn" in kernel.files else {"ptx": kernel.text("ptx"), "sass": code}
        for ending, text in texts.items():
            if text is not None:
                (folder / f"{stem}.{ending}").write_text(text, encoding="utf-8")


@contextlib.contextmanager
def _standard_error() -> Iterator[list[str]]:
    """What the block writes to the process's standard error, there when it has ended: Triton's compiler says in that
    way, and not in its exception, which of its passes failed."""
    said: list[str] = []
    with tempfile.TemporaryFile("w+", errors="replace") as file:
        sys.stderr.flush()
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield said
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            said.append(file.read())


def main() -> None:
    """Answer jobs with results."""

    def answer(task: dict[str, Any]) -> Result:
        save, disassemble = task.pop("save", None), task.pop("disassemble", True)
        return compile_job(Job(**task), Path(save) if save else None, disassemble)

    serve(answer)


if __name__ == "__main__":
    main()
