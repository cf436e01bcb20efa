"""Gradients that torch finishes: a sum over a width is a kernel's, a vector that is needed otherwise stays one."""

from __future__ import annotations

import pytest

from .conftest import plan_of


def _stored(name: str) -> dict[str, str]:
    return {s.name: s.kind for k in plan_of(name).backward for s in k.stores}


@pytest.mark.parametrize("name", ["mamba2", "mlstm"])
def test_a_weight_per_token_takes_one_number_of_the_keys_gradient(name: str) -> None:
    sums = [node for node, stores in plan_of(name).epilogue.sums.items() if node.axes == ("t",) and len(stores) == 1]
    assert [_stored(name)[plan_of(name).epilogue.sums[n][0].name] for n in sums] == ["partial"]
    assert not [s for s in _stored(name) if s.endswith("_rows")]


@pytest.mark.parametrize("name", ["retnet_rotary", "hedgehog"])
def test_what_mixes_a_tokens_features_takes_the_whole_gradient(name: str) -> None:
    assert [kind for s, kind in _stored(name).items() if s.endswith("_rows")] == ["part", "part"]
