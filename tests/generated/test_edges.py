"""Where a state is stored at every second chunk's edge, gradients are those of a state at every edge."""

from __future__ import annotations

import pytest

from tests.generated.catalogue import CHUNK_SPLIT, CHUNK_TRITON, OPERATORS, Form, emitted
from tests.generated.inputs import draw, draw_state
from tests.generated.support import assert_matches, run, truth

SPARSE = [name for name in OPERATORS if hasattr(getattr(emitted(name), "_Grid", None), "stretch")]


def test_gated_operators_store_few_states() -> None:
    assert {"simple_gla", "gla", "mlstm", "gla_value"} <= set(SPARSE)


@pytest.mark.interpreter
@pytest.mark.parametrize("form", [CHUNK_TRITON, CHUNK_SPLIT], ids=str)
@pytest.mark.parametrize("name", SPARSE)
def test_a_chunk_without_a_stored_state_has_the_right_gradients(
    name: str, form: Form, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = emitted(name)
    monkeypatch.setattr(module._Grid, "stretch", lambda grid, kernel, axis, *_: 2 * grid.tiles(kernel, axis)[0])
    values = draw(module, T=70, H=1, K=18, V=20)
    state = draw_state(module, values)
    assert_matches(run(module, form, values, state, chunk_size=16), truth(module, values, state))


def test_few_states_are_stored_where_they_are_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    module = emitted("simple_gla")
    grid = object.__new__(module._Grid)
    grid.widths = {"m": 128, "v": 128}
    found = []
    for rows in (16, 32, 64, 128):
        monkeypatch.setattr(module._Grid, "tiles", lambda *_, rows=rows: (rows, 128, 1, 8, 2))
        found.append(grid.stretch("kernel", "m", 1, 1))
    assert found == [32, 64, 128, 128]
