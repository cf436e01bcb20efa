"""A small language model whose mixing layer is a generated operator.

The block is RetNet's: pre-norm, retention (group norm per head, swish gate, output projection), residual; pre-norm,
feed-forward, residual. Queries, keys and values are read from a blend of each character and the one before it, RWKV's
token shift. The operator comes in as a module that recgen emitted; nothing here knows its recurrence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Memory(NamedTuple):
    """All that a layer keeps of a text of any length: its last input [B, width] and the operator's state."""

    last: Tensor
    state: Any


@dataclass(frozen=True)
class Size:
    """Widths of the model: `width` of the residual stream, `heads` heads with keys of `key` and values of `value`."""

    width: int = 128
    layers: int = 3
    heads: int = 4
    key: int = 32
    value: int = 64
    hidden: int = 256


class Retention(nn.Module):
    """Multi-head retention [B, T, width] → [B, T, width] around a generated operator."""

    def __init__(self, size: Size, operator: ModuleType) -> None:
        super().__init__()
        self.size, self.operator = size, operator
        self.shift = nn.Parameter(torch.linspace(0, 1, size.width))
        self.queries = nn.Linear(size.width, size.heads * size.key, bias=False)
        self.keys = nn.Linear(size.width, size.heads * size.key, bias=False)
        self.values = nn.Linear(size.width, size.heads * size.value, bias=False)
        self.gate = nn.Linear(size.width, size.heads * size.value, bias=False)
        self.out = nn.Linear(size.heads * size.value, size.width, bias=False)

    def forward(self, x: Tensor, memory: Memory | None, form: str, **options: Any) -> tuple[Tensor, Memory]:
        """Mix a whole sequence with one of the operator's forms; `options` go to it as they are."""
        before = x.new_zeros(x[:, :1].shape) if memory is None else memory.last[:, None]
        projected = self._project(x, torch.cat([before, x[:, :-1]], 1))
        mix = getattr(self.operator, form)
        mixed, state = mix(*projected, initial_state=None if memory is None else memory.state, **options)
        return self._finish(x, mixed), Memory(x[:, -1], state)

    def step(self, x: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
        """Mix one token [B, width] into the memory: constant time and space, however long the text already is."""
        mixed, state = self.operator.step(*self._project(x, memory.last), state=memory.state)
        return self._finish(x, mixed), Memory(x, state)

    def _project(self, x: Tensor, before: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        size, blend = self.size, torch.lerp(x, before, self.shift)
        return (
            self.queries(blend).unflatten(-1, (size.heads, size.key)),
            self.keys(blend).unflatten(-1, (size.heads, size.key)),
            self.values(blend).unflatten(-1, (size.heads, size.value)),
        )

    def _finish(self, x: Tensor, mixed: Tensor) -> Tensor:
        normed = F.layer_norm(mixed, mixed.shape[-1:])  # a norm per head: the heads forget at different rates
        out: Tensor = self.out(F.silu(self.gate(x)) * normed.flatten(-2))
        return out


class Block(nn.Module):
    """Retention and a feed-forward, each behind its own norm, each added to the residual stream."""

    def __init__(self, size: Size, operator: ModuleType) -> None:
        super().__init__()
        self.norm_mix = nn.LayerNorm(size.width)
        self.mix = Retention(size, operator)
        self.norm_feed = nn.LayerNorm(size.width)
        self.feed = nn.Sequential(
            nn.Linear(size.width, size.hidden), nn.GELU(), nn.Linear(size.hidden, size.width, bias=False)
        )

    def forward(self, x: Tensor, memory: Memory | None, form: str, **options: Any) -> tuple[Tensor, Memory]:
        mixed, memory = self.mix(self.norm_mix(x), memory, form, **options)
        return self._feed(x + mixed), memory

    def step(self, x: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
        mixed, memory = self.mix.step(self.norm_mix(x), memory)
        return self._feed(x + mixed), memory

    def _feed(self, x: Tensor) -> Tensor:
        fed: Tensor = x + self.feed(self.norm_feed(x))
        return fed


class LanguageModel(nn.Module):
    """Tokens int64 [B, T] → logits [B, T, tokens]; `step` does the same one token at a time."""

    def __init__(self, tokens: int, size: Size, operator: ModuleType) -> None:
        super().__init__()
        self.embed = nn.Embedding(tokens, size.width)
        self.blocks = nn.ModuleList(Block(size, operator) for _ in range(size.layers))
        self.norm = nn.LayerNorm(size.width)
        self.head = nn.Linear(size.width, tokens, bias=False)
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                nn.init.normal_(weight, std=1.0 if name.startswith("embed") else weight.shape[1] ** -0.5)

    def forward(
        self, tokens: Tensor, memories: Sequence[Memory] | None = None, form: str = "chunk", **options: Any
    ) -> tuple[Tensor, list[Memory]]:
        """Logits of every position by one form of the operator, and each layer's memory at the end.

        With the option output_final_state=True the memories are complete, and `step` can go on from them.
        """
        x, ends = self.embed(tokens), []
        starts: Sequence[Memory | None] = memories if memories else [None] * len(self.blocks)
        for block, memory in zip(self.blocks, starts, strict=True):
            x, end = block(x, memory, form, **options)
            ends.append(end)
        return self.head(self.norm(x)), ends

    def step(self, token: Tensor, memories: Iterable[Memory]) -> tuple[Tensor, list[Memory]]:
        """Logits [B, tokens] after one more token int64 [B], and the memories it leaves."""
        x, ends = self.embed(token), []
        for block, memory in zip(self.blocks, memories, strict=True):
            assert isinstance(block, Block)
            x, end = block.step(x, memory)
            ends.append(end)
        return self.head(self.norm(x)), ends

    @property
    def parameter_count(self) -> int:
        """How many numbers are learned."""
        return sum(weight.numel() for weight in self.parameters())
