"""Functions that kernels call for the operations Triton's language does not have, as the text a module carries."""
from __future__ import annotations

from collections.abc import Iterable

from .triton_expr import TRITON_HELPERS

OPERATIONS: dict[str, str] = {
    "_load": '''
def _load(pointer, rows, columns, rows_valid, columns_valid, WIDTH: tl.constexpr):
    """A tile in float32, zero where there is nothing."""
    valid = rows_valid[:, None] & columns_valid[None, :]
    return tl.load(pointer + rows[:, None] * WIDTH + columns[None, :], mask=valid, other=0.0).to(tl.float32)
''',
    "_store": '''
def _store(pointer, rows, columns, rows_valid, columns_valid, WIDTH: tl.constexpr, x):
    """Store a tile in the dtype of its tensor."""
    valid = rows_valid[:, None] & columns_valid[None, :]
    tl.store(pointer + rows[:, None] * WIDTH + columns[None, :], x.to(pointer.dtype.element_ty), mask=valid)
''',
    "_dot": '''
def _dot(a, b, DOT: tl.constexpr, PRECISION: tl.constexpr):
    """a @ b, accumulated in float32."""
    return tl.dot(a.to(DOT), b.to(DOT), input_precision=PRECISION)
''',
    "_siblings": '''
def _siblings(row, HALF: tl.constexpr):
    """The pairs (t, i) that part at this level: t in the upper, i in the lower half of one block of 2 · HALF rows."""
    block = row // HALF
    return (block[:, None] % 2 == 1) & (block[:, None] == block[None, :] + 1)
''',
    "_earlier_rows": '''
def _earlier_rows(x, row):
    """The sum over the rows strictly before each row."""
    return tl.sum(tl.where(row[None, :] < row[:, None], x[None, :], 0.0), 1)
''',
    "_later_rows": '''
def _later_rows(x, row):
    """The sum over the rows strictly after each row: the transpose of `_earlier_rows`."""
    return tl.sum(tl.where(row[None, :] > row[:, None], x[None, :], 0.0), 1)
''',
    "_between": '''
def _between(x, row):
    """x[t] → Σ_{i<j≤t} x[j] for every pair (t, i): a sum over the segment alone, nothing is subtracted."""
    return tl.cumsum(tl.where(row[:, None] > row[None, :], x[:, None], 0.0), 0)
''',
    "_rectangle": '''
def _rectangle(x, row):
    """x[t,i] → Σ_{t≥j, i<j} x[t,i] for every row j: the transpose of `_between`."""
    return tl.sum(tl.where(row[:, None] > row[None, :], tl.cumsum(x, 0, reverse=True), 0.0), 1)
''',
    "_earlier": '''
def _earlier(x, SIZE: tl.constexpr, C: tl.constexpr, WIDTH: tl.constexpr):
    """The sum over the rows of the same block of SIZE rows strictly before each row, by doubling the blocks."""
    sums = tl.zeros([C, WIDTH], tl.float32)
    for level in tl.static_range(8):
        if 2**level < SIZE:
            sums += _from_half(x, 2**level, 0, C, WIDTH)
    return sums
''',
    "_later": '''
def _later(x, SIZE: tl.constexpr, C: tl.constexpr, WIDTH: tl.constexpr):
    """The sum over the rows of the same block of SIZE rows strictly after each row: the transpose of `_earlier`."""
    sums = tl.zeros([C, WIDTH], tl.float32)
    for level in tl.static_range(8):
        if 2**level < SIZE:
            sums += _from_half(x, 2**level, 1, C, WIDTH)
    return sums
''',
    "_from_half": '''
def _from_half(x, HALF: tl.constexpr, SOURCE: tl.constexpr, C: tl.constexpr, WIDTH: tl.constexpr):
    """In every block of two halves, the other half's rows get the sum over the SOURCE half (0 lower, 1 upper)."""
    side = tl.arange(0, 2)
    halves = tl.sum(tl.reshape(x, [C // (2 * HALF), 2, HALF, WIDTH]), 2)
    total = tl.sum(tl.where(side[None, :, None] == SOURCE, halves, 0.0), 1)
    received = tl.where(side[None, :, None] == SOURCE, 0.0, total[:, None, :])
    return tl.reshape(tl.broadcast_to(received[:, :, None, :], [C // (2 * HALF), 2, HALF, WIDTH]), [C, WIDTH])
''',
}
NEEDS = {"_earlier": ("_from_half",), "_later": ("_from_half",)}


def helper_sources(names: Iterable[str]) -> list[str]:
    """The texts of the helpers and of those they call, each before its use."""
    wanted = set(names)
    wanted |= {n for name in wanted for n in NEEDS.get(name, ())}
    known = {**TRITON_HELPERS, **OPERATIONS}
    return [text.strip() for name, text in known.items() if name in wanted]
