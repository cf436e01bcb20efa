"""Tables of text: columns two spaces apart, words to the left and numbers to the right."""

from __future__ import annotations

from recgen.tables import aligned


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    rows = [("form", "runs", ""), ("chunk", "8", "ok"), ("step", "128", "")]
    assert aligned(rows) == "form   runs\nchunk  8     ok\nstep   128"
    assert aligned(rows, {1}) == "form   runs\nchunk     8  ok\nstep    128"


def test_a_table_without_rows_is_empty() -> None:
    assert aligned([]) == ""
