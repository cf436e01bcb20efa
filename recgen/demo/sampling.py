"""Write text with the recurrent form: one `step` per character, its whole memory one state of fixed size per layer."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from recgen.demo.corpus import Corpus
from recgen.demo.model import LanguageModel


@dataclass(frozen=True)
class Sample:
    """A sampled text. `logits` [N, alphabet] are those each of the N sampled characters was drawn from.

    `draws` [N] in (0, 1) are the random numbers that drew them, so that the same draw can be made from other logits.
    """

    prompt: str
    text: str
    tokens: Tensor
    logits: Tensor
    draws: Tensor
    temperature: float
    seconds: float
    memory_numbers: int


@torch.no_grad()
def sample(
    model: LanguageModel, corpus: Corpus, prompt: str, length: int = 500, temperature: float = 0.6, seed: int = 0
) -> Sample:
    """Read `prompt` with the chunk form, then go on with `step` from the state that it hands over.

    KeyError when the prompt has a character that the corpus does not have.
    """
    generator = torch.Generator().manual_seed(seed)
    start = corpus.encode(prompt)[None]
    draws = torch.rand(length, generator=generator, dtype=torch.float64)
    began = time.perf_counter()
    logits, memories = model(start, output_final_state=True)
    last, seen, tokens = logits[:, -1], [], []
    for draw in draws:
        seen.append(last)
        token = drawn(last, draw[None], temperature)
        tokens.append(token)
        last, memories = model.step(token, memories)
    written = torch.cat(tokens)
    return Sample(
        prompt=prompt,
        text=corpus.decode(written),
        tokens=torch.cat([start[0], written]),
        logits=torch.cat(seen),
        draws=draws,
        temperature=temperature,
        seconds=time.perf_counter() - began,
        memory_numbers=sum(tensor.numel() for tensor in tree_leaves(memories)),
    )


def drawn(logits: Tensor, draws: Tensor, temperature: float) -> Tensor:
    """The tokens int64 [N] that the numbers `draws` [N] pick from softmax(logits [N, alphabet] / temperature)."""
    share = torch.softmax(logits.double() / temperature, -1).cumsum(-1)
    return (share < draws[:, None] * share[:, -1:]).sum(-1)
