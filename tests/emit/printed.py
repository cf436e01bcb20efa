"""Runs printed expressions: torch text as functions of a module, Triton text as kernels in the interpreter."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import torch

from recgen.emit.triton_expr import TRITON_HELPERS
from tests.algebra.expressions import SYMBOLS

NAMES = {symbol: symbol.name for symbol in SYMBOLS}


def module_from(path: Path, source: str) -> ModuleType:
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def torch_module(path: Path, texts: Sequence[str]) -> ModuleType:
    functions = "\n\n".join(f"def e{i}(x, y, p, q):\n    return {text}" for i, text in enumerate(texts))
    return module_from(path, f"import math\nimport torch\nimport torch.nn.functional as F\n\n{functions}\n")


def triton_source(texts: Sequence[str], dtype: str = "float64") -> str:
    loads = "\n".join(f"    {name} = tl.load(inputs + {8 * i} + i)" for i, name in enumerate(NAMES.values()))
    head = ["import triton", "import triton.language as tl"]
    helpers = [f"@triton.jit\n{text}" for text in TRITON_HELPERS.values()]
    kernels = [
        f"@triton.jit\ndef e{i}(inputs, output):\n    i = tl.arange(0, 8)\n{loads}\n"
        f"    tl.store(output + i, tl.zeros([8], tl.{dtype}) + ({text}))\n"
        for i, text in enumerate(texts)
    ]
    return "\n\n".join(["\n".join(head), *helpers, *kernels])


def run_triton(path: Path, texts: Sequence[str], inputs: torch.Tensor) -> list[torch.Tensor]:
    """Each text at eight points, in Triton's interpreter; inputs [4, 8] are x, y, p, q."""
    module = module_from(path, triton_source(texts, str(inputs.dtype).removeprefix("torch.")))
    outputs = [torch.empty(8, dtype=inputs.dtype) for _ in texts]
    for i, output in enumerate(outputs):
        getattr(module, f"e{i}")[(1,)](inputs, output)
    return outputs
