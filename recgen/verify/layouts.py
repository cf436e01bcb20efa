"""Memory layouts: the same values, stored as callers store them. Every cell that is not a value holds NaN."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def contiguous(x: Tensor) -> Tensor:
    """The head of a longer, NaN-tailed buffer, so that reading past the end shows."""
    buffer = x.new_full((x.numel() + 64,), torch.nan)
    view = buffer[: x.numel()].view(x.shape)
    view.copy_(x)
    return view


def fused(x: Tensor) -> Tensor:
    """A slice of the last axis of a wider tensor, as the parts of a fused projection are."""
    if x.dim() == 0:
        return contiguous(x)
    width = x.shape[-1]
    view = x.new_full((*x.shape[:-1], width + 5), torch.nan)[..., 3 : 3 + width]
    view.copy_(x)
    return view


def transposed(x: Tensor) -> Tensor:
    """Axes 1 and 2 swapped in memory: [B, H, T, X] storage seen as [B, T, H, X]."""
    if x.dim() < 3:
        return x.t().contiguous().t() if x.dim() == 2 else contiguous(x)
    view = x.new_full((x.shape[0], x.shape[2], x.shape[1], *x.shape[3:]), torch.nan).transpose(1, 2)
    view.copy_(x)
    return view


def every_second(x: Tensor) -> Tensor:
    """`buffer[:, ::2]`: every second token of a longer sequence (axis 0 when there is only one axis)."""
    if x.dim() == 0:
        return contiguous(x)
    axis = min(1, x.dim() - 1)
    shape = list(x.shape)
    shape[axis] *= 2
    view = x.new_full(shape, torch.nan)[(slice(None),) * axis + (slice(None, None, 2),)]
    view.copy_(x)
    return view


def expanded(x: Tensor) -> Tensor:
    """Stride 0 along the first axis, and along time where the first axis is 1: values are those of its first entry."""
    if x.dim() == 0 or x.numel() == 0:
        return contiguous(x)
    axis = 0 if x.shape[0] > 1 or x.dim() == 1 else 1
    return x.narrow(axis, 0, 1).clone().expand(x.shape)


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "contiguous": contiguous,
    "fused": fused,
    "transposed": transposed,
    "every_second": every_second,
    "expanded": expanded,
}
