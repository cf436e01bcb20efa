"""The claim that the forms are one operator, as numbers: the trained model's logits by each form, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

import torch
from torch import Tensor

from recgen.demo.model import LanguageModel, Size
from recgen.demo.sampling import Sample, drawn

TOLERANCES = {torch.float32: 1e-5, torch.float64: 1e-12}
"""Relative errors that rounding explains, for a whole model of a few layers."""


@dataclass(frozen=True)
class Equality:
    """How far one form's logits are from the parallel form's on the same text.

    `relative` is ‖a − b‖/‖b‖ over all characters, `largest` the biggest difference of any one logit, `same`
    how many of `characters` come out the same when drawn with the same random numbers.
    """

    form: str
    dtype: str
    largest: float
    relative: float
    tolerance: float
    same: int
    characters: int

    @property
    def ok(self) -> bool:
        """Within tolerance; NaN never is."""
        return self.relative <= self.tolerance


def equalities(model: LanguageModel, size: Size, operator: ModuleType, sampled: Sample) -> list[Equality]:
    """Compare the logits that were sampled from, and each form's on the whole text, with the parallel form's."""
    exact = LanguageModel(model.embed.num_embeddings, size, operator).double()
    exact.load_state_dict(model.state_dict())
    rows = []
    for twin, dtype in ((model, torch.float32), (exact, torch.float64)):
        parallel = _logits(twin, sampled, "parallel")
        rows += [compared(name, logits, parallel, sampled, dtype) for name, logits in _others(twin, sampled, dtype)]
    return rows


def compared(form: str, logits: Tensor, parallel: Tensor, sampled: Sample, dtype: torch.dtype) -> Equality:
    """One row of the table."""
    ours, theirs = logits.double(), parallel.double()
    same = drawn(ours, sampled.draws, sampled.temperature) == drawn(theirs, sampled.draws, sampled.temperature)
    return Equality(
        form=form,
        dtype=str(dtype).removeprefix("torch."),
        largest=(ours - theirs).abs().max().item(),
        relative=((ours - theirs).norm() / theirs.norm()).item(),
        tolerance=TOLERANCES[dtype],
        same=int(same.sum()),
        characters=len(same),
    )


def _others(model: LanguageModel, sampled: Sample, dtype: torch.dtype) -> Iterator[tuple[str, Tensor]]:
    if dtype == torch.float32:
        yield "step, as sampled", sampled.logits
    yield "step", _stepped(model, sampled)
    for form in ("recurrent", "chunk"):
        yield form, _logits(model, sampled, form)


@torch.no_grad()
def _logits(model: LanguageModel, sampled: Sample, form: str) -> Tensor:
    logits, _ = model(sampled.tokens[None, :-1], form=form)
    sampled_ones: Tensor = logits[0, len(sampled.prompt) - 1 :]
    return sampled_ones


@torch.no_grad()
def _stepped(model: LanguageModel, sampled: Sample) -> Tensor:
    """The logits of the sampled characters by `step` alone, the prompt's first character read by the recurrent form."""
    tokens = sampled.tokens[None, :-1]
    logits, memories = model(tokens[:, :1], form="recurrent", output_final_state=True)
    rows = [logits[:, 0]]
    for token in tokens[0, 1:]:
        last, memories = model.step(token[None], memories)
        rows.append(last)
    return torch.cat(rows)[len(sampled.prompt) - 1 :]
