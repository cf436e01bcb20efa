"""Which products Triton's IR puts on tensor cores, on lines as Triton writes them."""

from __future__ import annotations

import pytest

from recgen.cost.products import lowered

HEAD = """
#blocked = #ttg.blocked<{sizePerThread = [1, 1]}>
#linear = #ttg.linear<{register = []}>
#mma = #ttg.nvidia_mma<{versionMajor = 2}>
#mma1 = #ttg.amd_mfma<{version = 3}>
"""
DOT = "%y = tt.dot %a, %b, %c : tensor<16x64xbf16, #ttg.dot_op<{{opIdx = 0, parent = {0}}}>> * " \
      "tensor<64x32xbf16, #ttg.dot_op<{{opIdx = 1, parent = {0}}}>> -> tensor<16x32xf32, {0}> loc(#loc7)"  # fmt: skip


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (DOT.format("#mma"), (1, 0)),
        (DOT.format("#mma1"), (1, 0)),
        (DOT.format("#blocked"), (0, 1)),
        (DOT.format("#linear"), (0, 1)),
        ("%y = ttng.warp_group_dot %a, %b, %c : !ttg.memdesc<64x32xbf16, #shared> -> tensor<64x64xf32, #mma>", (1, 0)),
        ("%t = ttng.tc_gen5_mma %a, %b, %d[%t0], %false, %true : !ttg.memdesc<64x32xbf16, #shared>", (1, 0)),
        ("%z = tt.expand_dims %v : tensor<64xi1> -> tensor<64x1xi1, #mma>", (0, 0)),
    ],
)
def test_a_line(line: str, found: tuple[int, int]) -> None:
    assert lowered(HEAD + line) == found


def test_products_add_up() -> None:
    assert lowered("\n".join([HEAD, DOT.format("#mma"), DOT.format("#mma"), DOT.format("#blocked")])) == (2, 1)
