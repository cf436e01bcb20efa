"""Compile what an operator launches for a GPU that is not in this machine, and read what it would cost there.

    with offline("sm_90") as compiled:
        o, _ = module.operator(**inputs, mode="chunk", backend="triton")   # CPU tensors
        o.sum().backward()
    print(compiled.table())

Inside the block a stand-in Triton driver is active: a launch compiles its kernel for the target, machine code included,
is written down, and does nothing. The operator's own results are therefore meaningless. A kernel that does not compile
raises Triton's error; one that needs more shared memory than the target has raises `OutOfResources`, as on the chip.
With `keep_going` such a kernel is written down with its error instead, and what comes after it is launched too.

The process must have been started without TRITON_INTERPRET, which Triton reads when it is imported. Any Triton from
3.3 on will do: `make compile-versions` tries one of each minor version.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from recgen.tables import aligned
from recgen.targets import TARGETS, Target


@dataclass
class Kernel:
    """One compiled variant, or one that failed with `error`. registers and spill (bytes per thread) are -1 where the
    target's tools do not tell; programs are those of all launches, grid is that of the last."""

    name: str
    hash: str
    warps: int
    stages: int
    shared: int
    registers: int = -1
    spill: int = -1
    launches: int = 0
    programs: int = 0
    grid: tuple[int, int, int] = (0, 0, 0)
    error: str = ""
    files: dict[str, Path] = field(default_factory=dict)

    def text(self, stage: str) -> str:
        """The kernel at one stage of Triton's compiler: ttir, ttgir, llir, ptx or amdgcn."""
        return self.files[stage].read_text()


@dataclass
class Compiled:
    """What was launched while the stand-in driver was active: one entry per compiled variant, in order."""

    target: Target
    kernels: dict[str, Kernel] = field(default_factory=dict)

    def variants(self) -> dict[str, int]:
        """Kernel name → number of its compiled variants."""
        names = [kernel.name for kernel in self.kernels.values()]
        return {name: names.count(name) for name in dict.fromkeys(names)}

    def table(self) -> str:
        """Aligned text, one line per variant."""
        columns = ("launches", "warps", "stages", "shared", "registers", "spill")
        rows: list[tuple[str, ...]] = [("kernel", *columns)]
        rows += [(k.name, *(str(getattr(k, c)) for c in columns)) for k in self.kernels.values()]
        return aligned(rows)


@contextlib.contextmanager
def offline(target: str, *, resources: bool = True, keep_going: bool = False) -> Iterator[Compiled]:
    """Make the stand-in driver for `target` (a name in TARGETS) active, and hand out the record of its launches.

    resources: read registers and spills out of each binary (some 50 ms per kernel).
    keep_going: a kernel that fails is recorded with its error and does not end the block.
    Raises KeyError for an unknown target, RuntimeError when Triton was imported for its interpreter.
    """
    from triton.runtime import driver
    from triton.runtime.jit import JITFunction

    from .standin import StandIn, linker

    if _interprets():
        raise RuntimeError("offline compilation needs a process without TRITON_INTERPRET")
    compiled = Compiled(TARGETS[target])
    place = "_active" if hasattr(driver, "_active") else "active"  # the latter up to Triton 3.4
    previous, run = getattr(driver, place), JITFunction.run
    setattr(driver, place, StandIn(compiled, resources))
    if keep_going:
        JITFunction.run = _recording_errors(run, compiled)
    try:
        with linker(compiled.target):
            yield compiled
    finally:
        JITFunction.run = run
        setattr(driver, place, previous)


def _interprets() -> bool:
    """Whether the Triton of this process interprets kernels."""
    import triton

    if hasattr(triton, "knobs"):
        return bool(triton.knobs.runtime.interpret)
    return os.environ.get("TRITON_INTERPRET") == "1"  # Triton 3.3


def _recording_errors(run: Callable[..., Any], compiled: Compiled) -> Callable[..., Any]:
    """A launch that writes down what a kernel fails with: Triton's compiler raises errors of many kinds."""
    from .standin import loaded

    def recorded(function: Any, *arguments: Any, **options: Any) -> Any:
        before = set(loaded)
        try:
            return run(function, *arguments, **options)
        except Exception as problem:
            made = [kernel for hash, kernel in loaded.items() if hash not in before]  # compiled, but too large
            name = function.__name__
            failed = made[0] if made else Kernel(name, f"{name} failed", options["num_warps"], options["num_stages"], 0)
            kernel = compiled.kernels.setdefault(failed.hash, replace(failed))
            kernel.error = f"{type(problem).__name__}: {problem}"
            kernel.launches += 1
            return None

    return recorded
