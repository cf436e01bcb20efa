"""Dead memory is loud in these tests: what torch.empty returns is NaN until it is written."""
from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from triton.runtime.interpreter import InterpretedFunction


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


_CALL = InterpretedFunction.__call__
_patched: set[object] = set()


def _call(self: InterpretedFunction, *args: object, **kwargs: object) -> object:
    if self.fn.__module__.startswith("triton.") and self.fn not in _patched:
        _patched.add(self.fn)
        return _CALL(self, *args, **kwargs)
    return self.rewrite()(*args, **kwargs)


@pytest.fixture(autouse=True)
def device_functions_are_called_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch patches triton.language for the interpreter. Patching it again at every call of a device function, as
    the interpreter does, changes nothing after the first time and takes longer than all arithmetic."""
    monkeypatch.setattr(InterpretedFunction, "__call__", _call)
