"""What a form is held against: the truth (naive in float64), and what plain eager code achieves in the same dtype.

The eager reference is `naive` itself with every operation's result rounded to the dtype, as torch rounds when a user
writes the token loop in that dtype. It tells how much accuracy the case allows: where intermediate results cancel (a
normaliser near zero, the gradient through a ratio), no code is accurate. Because the roundings of one run may be lucky,
the loop is also run in float64 with random errors of the same size (Monte Carlo arithmetic); the largest error counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import torch
from torch import Generator, Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from .case import Case
from .data import Data, build
from .errors import compare
from .profile import Profile
from .run import Results, run_naive

SIXTEEN_BIT = ("bfloat16", "float16")
Shapes = frozenset[tuple[int, ...]]


PICKS = frozenset({"amax", "amin", "max", "min", "maximum", "minimum"})
"""Operations that pick one of their inputs: they round nothing, and their gradient asks which one it was."""


class Changed(TorchDispatchMode):
    """Applies `change` to each operation's result of dtype `dtype`, except results of a shape in `kept`, views and what
    is picked."""

    def __init__(self, change: Callable[[Tensor], Tensor], dtype: torch.dtype, kept: Shapes) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's own
        self.change, self.dtype, self.kept = change, dtype, kept

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled here, and skipping dynamo would import it: seconds

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        writes, views = _nature(func)
        if views and not writes or func.overloadpacket.__name__ in PICKS:
            return out
        return (
            self._changed(out, writes) if isinstance(out, Tensor) else tree_map(lambda x: self._changed(x, writes), out)
        )

    def _changed(self, x: Any, writes: bool) -> Any:
        if not isinstance(x, Tensor) or x.dtype is not self.dtype or tuple(x.shape) in self.kept:
            return x
        return x.copy_(self.change(x)) if writes else self.change(x)


@cache
def _nature(func: Any) -> tuple[bool, bool]:
    """Whether an operation writes into an argument, and whether it returns (part of) one."""
    return func._schema.is_mutable, any(r.alias_info is not None for r in func._schema.returns)


def rounded_to(dtype: torch.dtype, kept: Shapes = frozenset()) -> Changed:
    """float32 results rounded to `dtype`."""
    return Changed(lambda x: x.to(dtype).to(torch.float32), torch.float32, kept)


def disturbed(dtype: torch.dtype, seed: int, kept: Shapes = frozenset()) -> Changed:
    """float64 results that `dtype` cannot hold exactly, times 1 + u·U(−1, 1), where u is the dtype's rounding unit.

    Of float64 itself all results, times 1 ± 2u: less would often round back, as where a sigmoid has become 1.
    """
    generator = Generator().manual_seed(seed)
    unit = torch.finfo(dtype).eps / 2

    def change(x: Tensor) -> Tensor:
        noise = unit * (2 * torch.rand(x.shape, generator=generator, dtype=x.dtype) - 1)
        if dtype is x.dtype:
            return x * (1 + 2 * unit * noise.sign())
        return torch.where(x.to(dtype) == x, x, x * (1 + noise))

    return Changed(change, torch.float64, kept)


class References:
    """Truth and eager results per case, remembered so that every form and backend shares them."""

    def __init__(self, profile: Profile, keep: int = 64) -> None:
        self.profile, self.keep = profile, keep
        self._truth: dict[Case, Results] = {}
        self._eager: dict[tuple[Case, bool, int | None], dict[str, float]] = {}
        self._doubt: dict[tuple[Case, int], dict[str, float]] = {}

    def data(self, case: Case) -> Data:
        """The case's tensors, freshly built."""
        return build(self.profile, case)

    def truth(self, case: Case) -> Results:
        """`naive` in float64 on the same rounded values."""
        key = case.data()
        if key not in self._truth:
            if len(self._truth) >= self.keep:
                self._truth.pop(next(iter(self._truth)))
            self._truth[key] = run_naive(self.profile, key, self.data(key).double())
        return self._truth[key]

    def allowance(self, case: Case, name: str, *, samples: int = 2, wide_state: bool = False) -> float:
        """The error that the eager reference's own error of this result allows; infinite where that overflows.

        1.1 times the eager error in 16 bits, 2 times in float32 and float64, 4 times when the eager loop keeps its
        state in float32 (`wide_state`); more for few numbers, whose error varies from rounding to rounding.
        `samples` runs with random errors are taken beside the plain one, and as many of the truth's own: where its
        terms cancel, as in 1 - tanh(x)², not even float64 tells the result from 0."""
        factor = 4.0 if wide_state else 1.1 if case.dtype in SIXTEEN_BIT else 2.0
        numbers = max(1, self.truth(case)[name].numel())
        plain = self._eager_errors(case.data(), wide_state, None)[name]
        errors = [self._eager_errors(case.data(), wide_state, n)[name] for n in range(samples)]
        doubts = [self._doubts(case.data(), n)[name] for n in range(samples)]
        errors += filter(math.isfinite, doubts)
        return factor * (1 + 8 / math.sqrt(numbers)) * max([plain, *errors])

    def _eager_errors(self, case: Case, wide_state: bool, sample: int | None) -> dict[str, float]:
        key = (case, wide_state, sample)
        if key not in self._eager:
            dtype = case.torch_dtype
            shapes = [tuple(s.shape) for s in self.data(case).state_cotangents]
            kept: Shapes = frozenset(shapes if wide_state else ())
            if sample is not None:
                self._eager[key] = self._errors(case, torch.float64, disturbed(dtype, sample, kept))
            elif case.dtype in SIXTEEN_BIT:
                self._eager[key] = self._errors(case, torch.float32, rounded_to(dtype, kept))
            else:
                self._eager[key] = self._errors(case, dtype, nullcontext())
        return self._eager[key]

    def _doubts(self, case: Case, sample: int) -> dict[str, float]:
        """How far the truth moves when every operation that makes it is disturbed by float64's rounding unit."""
        key = (case, sample)
        if key not in self._doubt:
            self._doubt[key] = self._errors(case, torch.float64, disturbed(torch.float64, sample))
        return self._doubt[key]

    def _errors(self, case: Case, dtype: torch.dtype, mode: AbstractContextManager[Any]) -> dict[str, float]:
        data = self.data(case).to(dtype)
        with mode:
            found = run_naive(self.profile, case, data)
        errors = compare(found, self.truth(case))
        return {name: math.inf if math.isnan(error) else error for name, error in errors.items()}
