"""States at some chunks' edges: the sums over one that is not there follow from the chunk before."""

from __future__ import annotations

import pytest

from recgen.plan.show import show_plan

from .conftest import plan_of


@pytest.mark.parametrize("name", ["simple_gla", "gla", "gla_value", "mlstm", "learned_decay"])
def test_every_kernel_that_reads_a_stored_state_can_do_with_fewer(name: str) -> None:
    kernels = [k for k in plan_of(name).kernels if k.edges or k.stores_edges]
    assert all(k.sparse for k in kernels)
    assert all(bool(k.catch_up) == bool(k.edges) for k in kernels)


def test_the_same_sum_one_chunk_earlier_is_decayed_and_the_rows_of_that_chunk_are_added() -> None:
    text = show_plan(plan_of("gla"))
    assert "store S at the start of some chunks" in text
    assert "where no state is stored, from the chunk before: d_chunk_decay[m] ← chunk_decay[m] d_chunk_decay[m]" in text


def test_a_decay_that_varies_along_both_axes_of_the_state_keeps_every_state() -> None:
    """Its sums keep an axis that the decay of the chunk before has, and no factor can be taken out of them."""
    kernels = [k for k in plan_of("gla_outer").kernels if k.edges or k.stores_edges]
    assert kernels and not any(k.sparse or k.catch_up for k in kernels)
