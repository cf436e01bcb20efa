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
    "_dot_nt": '''
def _dot_nt(a, b, DOT: tl.constexpr, PRECISION: tl.constexpr):
    """a @ bᵀ, accumulated in float32."""
    return tl.dot(a.to(DOT), tl.trans(b.to(DOT)), input_precision=PRECISION)
''',
    "_dot_tn": '''
def _dot_tn(a, b, DOT: tl.constexpr, PRECISION: tl.constexpr):
    """aᵀ @ b, accumulated in float32."""
    return tl.dot(tl.trans(a.to(DOT)), b.to(DOT), input_precision=PRECISION)
''',
    "_tile_siblings": '''
def _tile_siblings(row, HALF: tl.constexpr):
    """The pairs (t, i) that part at this level: t in the upper, i in the lower half of one block of 2 · HALF rows."""
    block = row // HALF
    return (block[:, None] % 2 == 1) & (block[:, None] == block[None, :] + 1)
''',
    "_tile_earlier_rows": '''
def _tile_earlier_rows(x, row):
    """The sum over the rows strictly before each row."""
    return tl.sum(tl.where(row[None, :] < row[:, None], x[None, :], 0.0), 1)
''',
    "_tile_later_rows": '''
def _tile_later_rows(x, row):
    """The sum over the rows strictly after each row: the transpose of `_tile_earlier_rows`."""
    return tl.sum(tl.where(row[None, :] > row[:, None], x[None, :], 0.0), 1)
''',
    "_tile_between": '''
def _tile_between(x, row):
    """x[t] → Σ_{i<j≤t} x[j] for every pair (t, i): a sum over the segment alone, nothing is subtracted."""
    return tl.cumsum(tl.where(row[:, None] > row[None, :], x[:, None], 0.0), 0)
''',
    "_tile_rectangle": '''
def _tile_rectangle(x, row):
    """x[t,i] → Σ_{t≥j, i<j} x[t,i] for every row j: the transpose of `_tile_between`."""
    return tl.sum(tl.where(row[:, None] > row[None, :], tl.cumsum(x, 0, reverse=True), 0.0), 1)
''',
    "_tile_inside": '''
def _tile_inside(x, row):
    """x[t] → Σ_{i<j<t} x[j] for every pair (t, i): a sum over the segment alone, nothing is subtracted."""
    before = tl.gather(x, tl.maximum(row - 1, 0), 0)
    return tl.cumsum(tl.where(row[:, None] > row[None, :] + 1, before[:, None], 0.0), 0)
''',
    "_tile_around": '''
def _tile_around(x, row):
    """x[t,i] → Σ_{t>j, i<j} x[t,i] for every row j: the transpose of `_tile_inside`."""
    after = tl.gather(x, tl.broadcast_to(tl.minimum(row + 1, row.shape[0] - 1)[:, None], x.shape), 0)
    later = tl.cumsum(tl.where(row[:, None] == row.shape[0] - 1, 0.0, after), 0, reverse=True)
    return tl.sum(tl.where(row[:, None] > row[None, :], later, 0.0), 1)
''',
    "_tile_earlier": '''
def _tile_earlier(x, row, SIZE: tl.constexpr, C: tl.constexpr, WIDTH: tl.constexpr):
    """The sum over the rows of the same block of SIZE rows strictly before each row."""
    if SIZE == 1:
        return tl.zeros([C, WIDTH], tl.float32)
    before = tl.gather(x, tl.broadcast_to(tl.maximum(row - 1, 0)[:, None], [C, WIDTH]), 0)
    before = tl.where((row % SIZE == 0)[:, None], 0.0, before)
    return tl.reshape(tl.cumsum(tl.reshape(before, [C // SIZE, SIZE, WIDTH]), 1), [C, WIDTH])
''',
    "_tile_later": '''
def _tile_later(x, row, SIZE: tl.constexpr, C: tl.constexpr, WIDTH: tl.constexpr):
    """The sum over the rows of the same block of SIZE rows strictly after each row; transposes `_tile_earlier`."""
    if SIZE == 1:
        return tl.zeros([C, WIDTH], tl.float32)
    after = tl.gather(x, tl.broadcast_to(tl.minimum(row + 1, C - 1)[:, None], [C, WIDTH]), 0)
    after = tl.where((row % SIZE == SIZE - 1)[:, None], 0.0, after)
    return tl.reshape(tl.cumsum(tl.reshape(after, [C // SIZE, SIZE, WIDTH]), 1, reverse=True), [C, WIDTH])
''',
    "_tile_through": '''
def _tile_through(x, SIZE: tl.constexpr, C: tl.constexpr, WIDTH: tl.constexpr):
    """The sum over the rows of the same block of SIZE rows up to each row, which is included."""
    if SIZE == 1:
        return x
    return tl.reshape(tl.cumsum(tl.reshape(x, [C // SIZE, SIZE, WIDTH]), 1), [C, WIDTH])
''',
    "_tile_onward": '''
def _tile_onward(x, SIZE: tl.constexpr, C: tl.constexpr, WIDTH: tl.constexpr):
    """The sum over the rows of the same block of SIZE rows from each row on; transposes `_tile_through`."""
    if SIZE == 1:
        return x
    return tl.reshape(tl.cumsum(tl.reshape(x, [C // SIZE, SIZE, WIDTH]), 1, reverse=True), [C, WIDTH])
''',
}


def helper_sources(names: Iterable[str]) -> list[str]:
    """The texts of the helpers and of those they call, each before its use."""
    wanted = set(names)
    known = {**TRITON_HELPERS, **OPERATIONS}
    return [text.strip() for name, text in known.items() if name in wanted]
