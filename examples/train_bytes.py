"""Train a small language model on bytes, with any causal operator of the catalogue, or one of your own, as its memory.

    python examples/train_bytes.py              # gla
    python examples/train_bytes.py retnet --steps 100
    python examples/train_bytes.py my_model/my_gla.py

The text is this Python's own standard library. Nothing below knows which operator it is: `Mixer` reads from the
generated module which tensors it wants, and of which shape.
"""

from __future__ import annotations

import argparse
import math
import sysconfig
import time
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import recgen


class Mixer(nn.Module):
    """[B, T, width] → [B, T, width]: project to the operator's inputs, mix the tokens with it, normalise, project.

    What is projected is a learned blend of each token and the one before it, RWKV's token shift.
    """

    def __init__(self, operator: ModuleType, width: int, heads: int) -> None:
        super().__init__()
        head = width // heads
        sizes = {"H": heads, "K": head, "V": head, "M": head, "D": width}
        self.shapes = [[sizes[axis] for axis in axes.split()[2:]] for axes in operator.INPUTS.values()]
        self.widths = [math.prod(shape) for shape in self.shapes]
        self.shift = nn.Parameter(torch.linspace(0, 1, width))
        self.project = nn.Linear(width, sum(self.widths))
        self.mix = operator.Operator(**{n: sizes[n] for n in signature(operator.Operator).parameters if n in sizes})
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        """Goes on from `state`, and returns the one after the last token; a single token takes the recurrent form."""
        last, state = state or (torch.zeros_like(x[:, :1]), None)
        blend = x.lerp(torch.cat([last, x[:, :-1]], 1), self.shift)
        parts = self.project(blend).split(self.widths, -1)
        inputs = [part.unflatten(-1, shape) for part, shape in zip(parts, self.shapes, strict=True)]
        o, state = self.mix(*inputs, initial_state=state, output_final_state=True)
        normed = F.layer_norm(o, o.shape[-1:])  # each head by itself: they may be of different size
        return self.out(normed.flatten(2)), (x[:, -1:], state)


class Block(nn.Module):
    """The mixer and a feed-forward layer, each behind its own norm, each added to the residual stream."""

    def __init__(self, operator: ModuleType, width: int, heads: int) -> None:
        super().__init__()
        self.norm, self.mixer = nn.LayerNorm(width), Mixer(operator, width, heads)
        hidden = 2 * width
        self.feed = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))

    def forward(self, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        mixed, state = self.mixer(self.norm(x), state)
        x = x + mixed
        return x + self.feed(x), state


class LanguageModel(nn.Module):
    """Bytes int64 [B, T] → logits [B, T, 256], and the state of every layer after the last byte."""

    def __init__(self, operator: ModuleType, width: int = 96, heads: int = 4, layers: int = 2) -> None:
        super().__init__()
        self.embed = nn.Embedding(256, width)
        self.blocks = nn.ModuleList(Block(operator, width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 256)

    def forward(self, tokens: Tensor, states: list[Any] | None = None) -> tuple[Tensor, list[Any]]:
        x, ends = self.embed(tokens), []
        for block, state in zip(self.blocks, states or [None] * len(self.blocks), strict=True):
            x, end = block(x, state)
            ends.append(end)
        return self.head(self.norm(x)), ends


def read_bytes() -> Tensor:
    """The top-level modules of the standard library, one after the other, int64 [N]."""
    files = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    return torch.frombuffer(bytearray(b"".join(file.read_bytes() for file in files)), dtype=torch.uint8).long()


def train(model: LanguageModel, text: Tensor, steps: int, batch: int = 8, length: int = 128) -> None:
    """Print the mean loss, in bits per byte, ten times on the way."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=steps + 1, pct_start=0.1)
    every, losses, start = max(1, steps // 10), [], time.perf_counter()
    for step in range(1, steps + 1):
        rows = torch.randint(len(text) - length, (batch, 1)) + torch.arange(length + 1)
        logits, _ = model(text[rows[:, :-1]])
        loss = F.cross_entropy(logits.flatten(0, 1), text[rows[:, 1:]].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item() / math.log(2))
        if step % every == 0:
            mean = sum(losses[-every:]) / every
            print(f"step {step:4}   {mean:.2f} bits per byte   {time.perf_counter() - start:3.0f} s", flush=True)


@torch.no_grad()
def sample(model: LanguageModel, prompt: str, length: int) -> str:
    """Read the prompt at once, then go on byte by byte: all that is kept of the text is one state per layer."""
    written = list(prompt.encode())
    logits, states = model(torch.tensor([written]))
    for _ in range(length):
        written.append(int(torch.multinomial(F.softmax(logits[0, -1] / 0.7, -1), 1)))
        logits, states = model(torch.tensor([written[-1:]]), states)
    return bytes(written).decode(errors="replace")


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small language model on bytes with a generated operator.")
    parser.add_argument("operator", nargs="?", default="gla", help="a name of the catalogue, a spec or a module")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--sample", type=int, default=300, help="how many bytes to write at the end")
    options = parser.parse_args()
    load = recgen.load_file if options.operator.endswith(".py") else recgen.load
    operator = load(options.operator)
    if not operator.SPEC.get("causal", True):
        parser.error(f"{options.operator} reads what comes later too, so it cannot predict the next byte")
    torch.set_flush_denormal(True)  # what a learned gate has nearly forgotten would slow a CPU down many times
    torch.manual_seed(0)
    model, text = LanguageModel(operator), read_bytes()
    print(f"{operator.SPEC['name']}: {sum(p.numel() for p in model.parameters()):,} parameters, {len(text):,} bytes")
    train(model, text, options.steps)
    print("\n" + sample(model, "def ", options.sample).rstrip())


if __name__ == "__main__":
    main()
