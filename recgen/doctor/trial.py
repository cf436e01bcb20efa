"""One small kernel, to see whether Triton works: `python -m recgen.doctor.trial` with the word interpreter, or with
names of targets.

Triton reads TRITON_INTERPRET when it is imported, so that each way needs a process of its own.
"""

from __future__ import annotations

import sys

import torch
import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def _double(x_ptr, y_ptr, SIZE: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.arange(0, SIZE)
    tl.store(y_ptr + at, 2 * tl.load(x_ptr + at))


def interpreted() -> None:
    """Fails with Triton's own error, or where the kernel computes something else."""
    x = torch.arange(16, dtype=torch.float32)
    y = torch.zeros_like(x)
    _double[(1,)](x, y, SIZE=16)
    if not torch.equal(y, 2 * x):
        raise RuntimeError(f"the interpreted kernel gave {y.tolist()}")


def compiled(target: str) -> None:
    """Fails with Triton's own error."""
    from recgen.verify.offline import offline

    x = torch.zeros(16)
    with offline(target, resources=False):
        _double[(1,)](x, x, SIZE=16, num_warps=1)


def main(ways: list[str]) -> None:
    if ways == ["interpreter"]:
        interpreted()
        print("kernels run on the CPU")
        return
    for target in ways:
        compiled(target)
    print(f"kernels compile for {', '.join(ways)}, none of which needs to be here")


if __name__ == "__main__":
    main(sys.argv[1:])
