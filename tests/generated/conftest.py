"""Dead memory is loud in these tests: what torch.empty returns is NaN until it is written."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def dead_memory_is_nan() -> Iterator[None]:
    torch.set_deterministic_debug_mode("error")
    torch.utils.deterministic.fill_uninitialized_memory = True
    yield
    torch.set_deterministic_debug_mode("default")


@pytest.fixture
def nothing_compiled() -> Iterator[None]:
    """Graphs of other tests are forgotten, before and after."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
