"""Peak memory of a piece of torch code on the CPU, counted exactly rather than sampled."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LiveStorages(TorchDispatchMode):
    """Follows every storage that an operation returns from its first use to its death.

    `live` is the bytes alive now, `peak` the most that were alive at once. What existed before is not counted, and
    neither is the scratch memory that one fused torch kernel frees before it returns. Operands are held until their
    operation ends, so a backward pass may read a few percent above what it takes unobserved.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's own
        self.live = 0
        self.peak = 0
        self._sizes: dict[int, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for tensor in tree_leaves((args, kwargs)):
            self._meet(tensor, count=False)
        if func.namespace == "recgen":  # an emitted operator: what it does inside counts too
            with self:
                result = func.redispatch(torch._C.DispatchKeySet(torch._C.DispatchKey.CPU), *args, **(kwargs or {}))
        else:
            result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            self._meet(tensor, count=True)
        return result

    def _meet(self, tensor: Any, count: bool) -> None:
        if not isinstance(tensor, Tensor):
            return
        storage = tensor.untyped_storage()
        key = id(storage)
        if key in self._sizes:
            return
        self._sizes[key] = storage.nbytes() if count else 0
        self.live += self._sizes[key]
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._forget, key)

    def _forget(self, key: int) -> None:
        self.live -= self._sizes.pop(key)


def peak_bytes(work: Callable[[], Any]) -> int:
    """The most bytes that `work()` held at once, on top of what was alive before it."""
    storages = LiveStorages()
    with storages:
        work()
    return storages.peak


def growth(lengths: list[int], amounts: list[float]) -> float:
    """The slope of log(amount) against log(length) by least squares: 1 is linear growth, 2 quadratic.

    Raises ValueError for fewer than two lengths.
    """
    if len(lengths) < 2:
        raise ValueError(f"growth needs at least two lengths, got {lengths}")
    x = torch.tensor(lengths, dtype=torch.float64).log()
    y = torch.tensor(amounts, dtype=torch.float64).log()
    x = x - x.mean()
    return float((x * (y - y.mean())).sum() / (x * x).sum())
