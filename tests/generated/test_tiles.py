"""The tiles that a module ships: every one gives right results, and what several kernels share fits together."""

from __future__ import annotations

import inspect
from types import ModuleType

import pytest

from recgen.verify import offline
from tests.generated.catalogue import CHUNK_SPLIT, CHUNK_TRITON, OPERATORS, Form, emitted
from tests.generated.inputs import draw, draw_state
from tests.generated.support import assert_matches, run, truth

SHIPPED = [name for name in OPERATORS if getattr(emitted(name), "TILES", None)]


def choices(module: ModuleType) -> list[dict[str, tuple[tuple[int, int, int, int], ...]]]:
    """What is shipped for a target and a width, each combination of rows and tiles once."""
    found = {}
    for widths in module.TILES.values():
        for kernels in widths.values():
            if kernels:
                found.setdefault(str({k: [c[:2] for c in configs] for k, configs in kernels.items()}), kernels)
    return list(found.values())


CASES = [pytest.param(name, n, id=f"{name}-{n}") for name in SHIPPED for n in range(len(choices(emitted(name))))]


def test_most_of_the_judged_operators_ship_tiles() -> None:
    assert {"retnet", "lightning", "simple_gla", "linear_attention", "mamba2"} <= set(SHIPPED)


@pytest.mark.interpreter
@pytest.mark.parametrize("form", [CHUNK_TRITON, CHUNK_SPLIT], ids=str)
@pytest.mark.parametrize(("name", "n"), CASES)
def test_every_shipped_tile_is_right(name: str, n: int, form: Form, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each alone, at a width that several tiles share where tiles are small."""
    module = emitted(name)
    kernels = choices(module)[n]
    values = draw(module, T=70, H=1, K=34, V=37)
    state = draw_state(module, values)
    needed = truth(module, values, state)
    for k in range(max(map(len, kernels.values()))):
        alone = {name: (configs[min(k, len(configs) - 1)],) for name, configs in kernels.items()}
        monkeypatch.setattr(module, "_choices", lambda *_, alone=alone: alone)
        assert_matches(run(module, form, values, state, chunk_size=None), needed, note=str(alone))


@pytest.mark.parametrize("name", SHIPPED)
def test_kernels_that_share_states_share_the_length_of_chunks(name: str) -> None:
    module = emitted(name)
    edges = {k.__name__ for k in module._KERNELS if "_edges_ptr" in " ".join(inspect.signature(k).parameters)}
    for target, widths in module.TILES.items():
        assert target in offline.TARGETS
        for width, kernels in widths.items():
            rows = {c[0] for k, configs in kernels.items() if k in edges for c in configs}
            assert len(rows) <= 1, (target, width)
            assert all(c[0] in module.CHUNK_SIZES and c[1] <= width for configs in kernels.values() for c in configs)


@pytest.mark.parametrize("name", SHIPPED)
def test_unknown_targets_and_exact_products_get_cautious_tiles(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = emitted(name)
    monkeypatch.setattr(module, "_interpreted", lambda: False)
    assert module._choices(64, exact=True) == {}
    monkeypatch.setattr(module, "_interpreted", lambda: True)
    for width, kernels in module.TILES["sm_90"].items():
        assert module._choices(width, exact=True) == kernels
    assert module._choices(512, exact=False) == {}
