"""Invent an operator: a spec of twelve lines, verified, then trained beside published ones on a task made for it.

    python examples/invent.py

The task is a table that changes. A token either writes a value under a key or asks for the value that was last written
there. Linear attention adds the new value to the old ones; one decay per head forgets every key alike. slots.yaml says
it as a recurrence: whatever is written into a slot takes away as much of what the slot held,

    S[t,m,c] = (1 - p[t,m]) S[t-1,m,c] + p[t,m] v[t,c],   p[t,m] = sigmoid(w[t]) sigmoid(a[t,m])

Everything else (the chunkwise form, its gradients, the kernels) follows from that.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from types import ModuleType

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from train_bytes import Block

import recgen
from recgen.verify import verify_spec

SPEC = Path(__file__).with_name("slots.yaml")
KEYS, VALUES = 8, 8
NOT_ASKED = -100  # what cross_entropy leaves out


class Table(nn.Module):
    """Tokens int64 [B, T] → logits [B, T, values] of the value that each asks for: one layer, one head."""

    def __init__(self, operator: ModuleType, width: int = 32) -> None:
        super().__init__()
        self.embed = nn.Embedding(KEYS * VALUES + KEYS, width)
        self.block = Block(operator, width, heads=1)
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, VALUES))

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.block(self.embed(tokens))[0])


def examples_of(count: int, length: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Tokens and answers, int64 [count, length] each. Three tokens of ten ask; a key never written has no answer."""
    keys = torch.randint(KEYS, (count, length), generator=generator)
    values = torch.randint(VALUES, (count, length), generator=generator)
    asks = torch.rand(count, length, generator=generator) < 0.3
    table, rows, answers = torch.full((count, KEYS), NOT_ASKED), torch.arange(count), []
    for t in range(length):
        held = table[rows, keys[:, t]]
        answers.append(torch.where(asks[:, t], held, NOT_ASKED))
        table[rows, keys[:, t]] = torch.where(asks[:, t], held, values[:, t])
    return torch.where(asks, KEYS * VALUES + keys, keys * VALUES + values), torch.stack(answers, 1)


def train(model: Table, steps: int) -> None:
    generator = torch.Generator().manual_seed(1)
    optimizer = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=steps + 1, pct_start=0.1)
    for _ in range(steps):
        tokens, answers = examples_of(32, 64, generator)
        loss = F.cross_entropy(model(tokens).flatten(0, 1), answers.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()


@torch.no_grad()
def accuracy(model: Table, length: int) -> float:
    """The share of right answers in 64 new sequences."""
    tokens, answers = examples_of(64, length, torch.Generator().manual_seed(2))
    asked = answers != NOT_ASKED
    return (model(tokens).argmax(-1)[asked] == answers[asked]).float().mean().item()


def main() -> None:
    parser = argparse.ArgumentParser(description="Verify an invented operator, and train it beside published ones.")
    parser.add_argument("others", nargs="*", default=["linear_attention", "mamba2", "gla", "hgrn2"])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--examples", type=int, default=10, help="random cases to verify each form on")
    options = parser.parse_args()
    torch.set_flush_denormal(True)  # what a learned gate has nearly forgotten would slow a CPU down many times

    print(SPEC.read_text(encoding="utf-8"))
    report = verify_spec(SPEC, forms=["chunk", "step"], backends=["torch"], examples=options.examples, seed=0)
    print(report.render(), "\n")
    if not report.ok:
        raise SystemExit(1)

    print("right answers after training    64 tokens   512 tokens   parameters   time")
    for operator in [SPEC, *options.others]:
        torch.manual_seed(0)
        module, start = recgen.load(operator), time.perf_counter()
        model = Table(module)
        train(model, options.steps)
        scores = "   ".join(f"{accuracy(model, length):10.1%}" for length in (64, 512))
        count = sum(p.numel() for p in model.parameters())
        print(f"{module.SPEC['name']:28} {scores}   {count:10,}   {time.perf_counter() - start:2.0f} s", flush=True)


if __name__ == "__main__":
    main()
