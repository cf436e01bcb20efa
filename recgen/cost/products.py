"""Which matrix products of a compiled kernel run on tensor cores, read from Triton's IR and from the machine code.

Triton decides in its own IR: it gives a product that tensor cores are to compute a layout of theirs, or an operation
of their own, and leaves any other in a layout of plain threads, where it becomes a chain of multiply-adds. Machine code
does not tell such a chain from other arithmetic, so products are counted in the IR. The instructions are counted as
well: what the IR promises has to be there.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from recgen.verify.offline import Kernel
from recgen.verify.standin import nvidia_tool

_LAYOUT = re.compile(r"^(#\w+) = #(?:ttg|triton_gpu)\.(\w+)", re.MULTILINE)
_DOT = re.compile(r"= tt\.dot(?:_scaled)? .*-> tensor<[^,>]*, (#\w+)>")
_OWN = re.compile(r"\bttng\.(?:warp_group_dot|tc_gen5_mma|tc_gen5_mma_scaled) ")
_TENSOR_LAYOUTS = {"nvidia_mma", "amd_mfma", "amd_wmma"}

_INSTRUCTION = {
    "cuda": re.compile(r"\b(?:[BDHIOQ]G?MMA|UTC[A-Z]*MMA)\b"),
    "hip": re.compile(r"\bv_(?:mfma|smfmac|wmma)(?=_)"),
}


@dataclass(frozen=True)
class Products:
    """The matrix products in a kernel's text; one inside a loop counts once.

    on            on tensor cores
    off           without them
    instructions  tensor-core instructions in the machine code, by mnemonic; None where the machine code cannot be read
    """

    on: int
    off: int
    instructions: dict[str, int] | None


def products(kernel: Kernel, machine_code: str | None) -> Products:
    """The products of a compiled kernel whose `machine_code` is known. None of them is on tensor cores when that has
    no instruction for them."""
    on, off = lowered(kernel.text("ttgir"))
    if machine_code is None:
        return Products(on, off, None)
    found = dict(Counter(_INSTRUCTION["cuda" if "cubin" in kernel.files else "hip"].findall(machine_code)))
    return Products(on, off, found) if found else Products(0, on + off, found)


def lowered(ttgir: str) -> tuple[int, int]:
    """How many products Triton's IR puts on tensor cores, and how many it does not."""
    layouts = dict(_LAYOUT.findall(ttgir))
    kinds = [layouts.get(layout) for layout in _DOT.findall(ttgir)]
    on = sum(kind in _TENSOR_LAYOUTS for kind in kinds)
    return on + len(_OWN.findall(ttgir)), len(kinds) - on


def machine_code(kernel: Kernel) -> str | None:
    """SASS or AMDGCN as text; None where the program that prints it is not there."""
    if "amdgcn" in kernel.files:
        return kernel.text("amdgcn")
    return _sass(kernel.files["cubin"])


@cache
def _sass(cubin: Path) -> str | None:
    for name, option in (("nvdisasm", "-c"), ("cuobjdump", "-sass")):
        tool = nvidia_tool(name)
        if tool is not None:
            done = subprocess.run([tool, option, cubin], capture_output=True, text=True)
            if done.returncode == 0:
                return done.stdout
    return None
