"""Compiles a kernel file for GPUs that are not here: `python offline_expressions.py FILE`, printing JSON.

The process must not have TRITON_INTERPRET set. The result maps each target to {kernel: whether its code has float64}.
"""

from __future__ import annotations

import importlib.util
import json
import sys

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

TARGETS = {
    "sm_80": GPUTarget("cuda", 80, 32),
    "sm_90": GPUTarget("cuda", 90, 32),
    "sm_100": GPUTarget("cuda", 100, 32),
    "gfx942": GPUTarget("hip", "gfx942", 64),
}


def main(path: str) -> None:
    spec = importlib.util.spec_from_file_location("kernels", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernels = {name: value for name, value in vars(module).items() if name.startswith("e") and name[1:].isdigit()}
    found: dict[str, dict[str, bool]] = {}
    for name, target in TARGETS.items():
        found[name] = {}
        for kernel, function in kernels.items():
            source = ASTSource(function, signature={"inputs": "*fp32", "output": "*fp32"})
            found[name][kernel] = "f64" in triton.compile(source, target=target).asm["ttir"]
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
