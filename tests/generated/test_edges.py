"""Where one state is stored for two chunks, gradients are those of a state for each."""

from __future__ import annotations

from types import ModuleType

import pytest

import recgen
from tests.generated.catalogue import CHUNK_SPLIT, CHUNK_TRITON, OPERATORS, Form, emitted
from tests.generated.inputs import draw, draw_state, weak
from tests.generated.support import assert_matches, relative_error, run, truth

SPARSE = [name for name in OPERATORS if hasattr(getattr(emitted(name), "_Grid", None), "stretch")]


def share(monkeypatch: pytest.MonkeyPatch, module: ModuleType, chunks: int) -> None:
    """Store one state for so many chunks, at any width."""
    monkeypatch.setattr(module._Grid, "stretch", lambda grid, kernel, axis, *_: chunks * grid.tiles(kernel, axis)[0])


def test_gated_operators_store_few_states() -> None:
    assert {"simple_gla", "gla", "mlstm", "gla_value"} <= set(SPARSE)


@pytest.mark.interpreter
@pytest.mark.parametrize("chunks", [1, 2], ids=["a state for each", "a state for two"])
@pytest.mark.parametrize("form", [CHUNK_TRITON, CHUNK_SPLIT], ids=str)
@pytest.mark.parametrize("name", SPARSE)
def test_chunks_that_share_a_state_have_the_right_gradients(
    name: str, form: Form, chunks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five chunks in one segment, or three and two, and a state of long ago that still counts."""
    module = emitted(name)
    monkeypatch.setattr(module, "SEGMENT", 48)
    share(monkeypatch, module, chunks)
    values = weak(module, T=70, H=1, K=18, V=20)
    state = draw_state(module, values)
    assert_matches(run(module, form, values, state, chunk_size=16), truth(module, values, state))


@pytest.mark.interpreter
@pytest.mark.parametrize("name", ["simple_gla", "gla"])
def test_the_decays_gradient_with_gate_logits_100_times_normal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = emitted(name)
    share(monkeypatch, module, 2)
    values = draw(module, T=70, H=1, K=18, V=20)
    values["g"] *= 100
    state = draw_state(module, values)
    found = run(module, CHUNK_TRITON, values, state, chunk_size=16)["d g"]
    assert relative_error(found, truth(module, values, state)["d g"]) <= 1e-5


WORDS = {
    "name": "words_of_triton",
    "title": "inputs that are called like what kernels call",
    "inputs": {"load": "B T H K", "other": "B T H K", "float32": "B T H V"},
    "decay": {"family": "scalar_gate"},
    "query": "load",
    "key": "other",
    "value": "float32",
}


@pytest.mark.interpreter
def test_inputs_may_be_called_like_what_kernels_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of the chunk before have other names, and nothing else has."""
    module = recgen.load(WORDS)
    share(monkeypatch, module, 2)
    values = module.sample_inputs(B=1, T=40, H=1)
    state = draw_state(module, values)
    assert_matches(run(module, CHUNK_TRITON, values, state, chunk_size=16), truth(module, values, state))


def test_few_states_are_stored_where_they_are_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    module = emitted("simple_gla")
    grid = object.__new__(module._Grid)
    grid.widths = {"m": 128, "v": 128}
    found = []
    for rows in (16, 32, 64, 128):
        monkeypatch.setattr(module._Grid, "tiles", lambda *_, rows=rows: (rows, 128, 1, 8, 2))
        found.append(grid.stretch("kernel", "m", 1, 1))
    assert found == [32, 64, 128, 128]
