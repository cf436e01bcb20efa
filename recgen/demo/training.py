"""Train the language model for a fixed number of steps, or until its share of the demo's time is used up."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from recgen.demo.corpus import Corpus
from recgen.demo.model import LanguageModel

NATS_TO_BITS = 1 / math.log(2)


@dataclass(frozen=True)
class Schedule:
    """How long to train and on what. `seconds` bounds the wall clock: on a slow machine fewer steps are made."""

    steps: int = 600
    seconds: float = 60.0
    batch: int = 8
    length: int = 256
    rate: float = 6e-3
    warmup: float = 0.05
    checks: int = 12
    seed: int = 0


@dataclass
class History:
    """Losses in bits per character: `train[i]` at step `steps[i]`, `held_out[i]` at step `checked[i]`."""

    steps: list[int] = field(default_factory=list)
    train: list[float] = field(default_factory=list)
    checked: list[int] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)
    seconds: float = 0.0
    characters: int = 0


def train(
    model: LanguageModel, corpus: Corpus, schedule: Schedule, report: Callable[[float, float], None] = lambda *_: None
) -> History:
    """Train in place; `report(progress in [0, 1], loss in bits)` is called after each step.

    The learning rate follows the larger of the two progresses, steps and seconds, so it always ends at zero.
    """
    generator = torch.Generator().manual_seed(schedule.seed)
    decayed = [w for w in model.parameters() if w.dim() > 1]
    others = [w for w in model.parameters() if w.dim() <= 1]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=schedule.rate, betas=(0.9, 0.98))
    history, start, progress, step = History(), time.perf_counter(), 0.0, 0
    while progress < 1:
        for group in optimizer.param_groups:
            group["lr"] = schedule.rate * rate_at(progress, schedule.warmup)
        inputs, targets = batch_of(corpus.train, schedule.batch, schedule.length, generator)
        loss = loss_of(model, inputs, targets)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        history.steps.append(step)
        history.train.append(loss.item() * NATS_TO_BITS)
        step += 1
        progress = max(step / schedule.steps, (time.perf_counter() - start) / schedule.seconds)
        if progress * schedule.checks >= len(history.held_out) + 1 or step == 1:
            history.checked.append(step)
            history.held_out.append(evaluate(model, corpus, schedule))
        report(min(progress, 1.0), history.train[-1])
    history.seconds = time.perf_counter() - start
    history.characters = step * schedule.batch * schedule.length
    return history


def rate_at(progress: float, warmup: float) -> float:
    """The share of the top learning rate at `progress`: a linear rise, then half a cosine down to zero."""
    if progress < warmup:
        return (progress + 1e-2) / (warmup + 1e-2)
    return 0.5 * (1 + math.cos(math.pi * min(1.0, (progress - warmup) / (1 - warmup))))


def batch_of(tokens: Tensor, batch: int, length: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Random windows of the text and the same windows one character on, int64 [batch, length] each."""
    starts = torch.randint(len(tokens) - length - 1, (batch, 1), generator=generator)
    index = starts + torch.arange(length)
    return tokens[index], tokens[index + 1]


def loss_of(model: LanguageModel, inputs: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy in nats per character."""
    logits, _ = model(inputs)
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


@torch.no_grad()
def evaluate(model: LanguageModel, corpus: Corpus, schedule: Schedule) -> float:
    """Bits per character on the same windows of the held-out files each time."""
    generator = torch.Generator().manual_seed(schedule.seed + 1)
    inputs, targets = batch_of(corpus.held_out, 2 * schedule.batch, schedule.length, generator)
    return loss_of(model, inputs, targets).item() * NATS_TO_BITS
