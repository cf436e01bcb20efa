"""A module that keeps as much of the contract as a compilation needs, and whose kernels each have one fault."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

SPEC = {"name": "faulty"}
INPUTS = {"q": "B T H K", "v": "B T H V"}
PARAMS: dict[str, str] = {}
STATE: dict[str, str] = {}
SCHEDULES = ("fused",)
CHUNK_SIZE = 16
MAX_WIDTH = 256


@triton.jit
def _does_not_compile(x_ptr, SIZE: tl.constexpr):
    row, few = tl.arange(0, SIZE), tl.arange(0, 2)
    x = tl.load(x_ptr + row[:, None] + few[None, :]).to(tl.float32)
    tl.store(x_ptr + row[:, None] + row[None, :], tl.dot(x, tl.trans(x)).to(tl.bfloat16))


@triton.jit
def _too_large(x_ptr, y_ptr):
    row, long = tl.arange(0, 64), tl.arange(0, 1024)
    x = tl.load(x_ptr + row[:, None] + long[None, :]).to(tl.float32)
    y = tl.load(y_ptr + long[:, None] + row[None, :]).to(tl.float32)
    tl.store(x_ptr + row[:, None] + row[None, :], tl.dot(x, y, input_precision="tf32").to(tl.bfloat16))


@triton.jit
def _off_the_tensor_cores(x_ptr, SIZE: tl.constexpr):
    row = tl.arange(0, SIZE)
    x = tl.load(x_ptr + row[:, None] + row[None, :]).to(tl.float32)
    tl.store(x_ptr + row[:, None] + row[None, :], tl.dot(x, x, input_precision="ieee").to(tl.bfloat16))


@triton.jit
def _narrow(x_ptr, stride):
    program = tl.program_id(0)
    tl.store(x_ptr + program * stride, tl.load(x_ptr + program * stride))


@triton.jit
def _fine(x_ptr, SIZE: tl.constexpr):
    row = tl.arange(0, SIZE)
    x = tl.load(x_ptr + row[:, None] * SIZE + row[None, :])
    tl.store(x_ptr + row[:, None] * SIZE + row[None, :], tl.dot(x, x).to(tl.bfloat16))


def operator(q: Tensor, v: Tensor, *, schedule: str = "auto", **_: object) -> tuple[Tensor, None]:
    """Launches every kernel; the output is differentiable, and nothing else about it is right."""
    x, y = (torch.zeros(2**17, dtype=torch.bfloat16) for _ in range(2))
    _does_not_compile[(1,)](x, SIZE=16, num_warps=4, num_stages=1)
    _too_large[(1,)](x, y, num_warps=8, num_stages=1)
    _off_the_tensor_cores[(1,)](x, SIZE=16, num_warps=4, num_stages=1)
    _narrow[(3,)](x, 100, num_warps=4, num_stages=1)
    _fine[(2,)](x, SIZE=16, num_warps=4, num_stages=1)
    return q.sum() * v, None


chunk = naive = operator


def sample_inputs(B=2, T=64, H=2, K=16, V=16, dtype=torch.float32, seed=0) -> dict[str, Tensor]:
    sizes = {"B": B, "T": T, "H": H, "K": K, "V": V}
    return {name: torch.ones([sizes[a] for a in axes.split()], dtype=dtype) for name, axes in INPUTS.items()}
