"""How far apart stored states are: what the kernel that reads them reads again instead, counted."""

from __future__ import annotations

import pytest
import torch

from recgen.emit.stretch import stretch_text
from tests.generated.catalogue import emitted
from tests.plan.conftest import plan_of


@pytest.mark.parametrize(
    "name, read_again",
    [("simple_gla", (1, 1)), ("gla", (2, 1)), ("gla_value", (1, 2))],
    ids=["keys and values", "and a decay per key channel", "and a decay per value channel"],
)
def test_what_is_read_again_is_counted(name: str, read_again: tuple[int, int]) -> None:
    whole, _, single = stretch_text(plan_of(name)).partition(" else ")
    assert whole.startswith("grid.stretch('_chunk_backward_writes', 'm', ")
    assert whole.endswith("if grid.fits('_chunk_backward_writes')")
    axis = "v" if name == "gla_value" else "m"
    own, across = read_again if axis == "m" else read_again[::-1]
    assert single.endswith(f"'{axis}', {own}, {across})")


def test_where_every_chunk_has_its_state_nothing_is_said() -> None:
    assert stretch_text(plan_of("retnet")) == stretch_text(plan_of("gla_outer")) == ""


@pytest.mark.interpreter
@pytest.mark.parametrize(
    "rows, tile, chunks",
    [(16, 128, 2), (64, 128, 2), (128, 128, 1), (32, 64, 2), (64, 64, 1), (32, 32, 2), (64, 32, 1)],
)
def test_two_chunks_where_rows_are_less_to_read_than_a_state(
    rows: int, tile: int, chunks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = emitted("gla")
    monkeypatch.setattr(module, "_choices", lambda *_: {"_chunk_backward_key": ((rows, tile, 8, 2),)})
    x = torch.zeros(1, 64, 1, 128)
    grid = module._Grid("fused", 0, None, 1, x, x)
    assert grid.stretch("_chunk_backward_key", "m", 2, 1) == chunks * rows
