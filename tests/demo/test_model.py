"""The language model around a generated operator: its forms are one function, and it learns."""

from __future__ import annotations

from types import ModuleType

import pytest
import torch

from recgen.demo.corpus import Corpus
from recgen.demo.equality import Equality, compared, equalities
from recgen.demo.model import LanguageModel
from recgen.demo.sampling import drawn, sample
from recgen.demo.training import Schedule, batch_of, rate_at, train
from tests.demo.small import SMALL


@pytest.mark.parametrize("form", ["naive", "recurrent", "chunk", "parallel"])
def test_a_character_sees_only_what_came_before(model: LanguageModel, form: str) -> None:
    text = torch.randint(10, (1, 20), generator=torch.Generator().manual_seed(0))
    changed = text.clone()
    changed[0, 12] = (changed[0, 12] + 1) % 10
    before, after = model(text, form=form)[0], model(changed, form=form)[0]
    assert before[:, :12].equal(after[:, :12])
    assert not before[:, 12:].isclose(after[:, 12:]).all()


def test_stepping_goes_on_from_the_memory_that_a_prompt_left(model: LanguageModel) -> None:
    text = torch.randint(10, (2, 30), generator=torch.Generator().manual_seed(0))
    whole, _ = model(text, form="parallel")
    _, memories = model(text[:, :20], output_final_state=True)
    for t in range(20, 30):
        logits, memories = model.step(text[:, t], memories)
        assert torch.allclose(logits, whole[:, t], atol=1e-5)


def test_the_memory_does_not_grow(model: LanguageModel, corpus: Corpus) -> None:
    short, long = sample(model, corpus, "def ", 1), sample(model, corpus, "def ", 40)
    assert short.memory_numbers == long.memory_numbers
    assert long.memory_numbers == SMALL.layers * (SMALL.width + SMALL.heads * SMALL.key * SMALL.value)


def test_it_learns_the_text(model: LanguageModel, corpus: Corpus) -> None:
    history = train(model, corpus, Schedule(steps=40, seconds=60, batch=4, length=32, checks=4))
    assert len(history.train) == 40
    assert history.held_out[-1] < 0.5 * history.held_out[0]
    assert history.checked[-1] == 40, "the last step is always judged"


def test_training_ends_with_its_time(model: LanguageModel, corpus: Corpus) -> None:
    history = train(model, corpus, Schedule(steps=10**6, seconds=0.5, batch=2, length=16))
    assert 0 < len(history.train) < 10**6
    assert len(history.held_out) >= 2


def test_the_rate_rises_and_falls_to_zero() -> None:
    assert 0 < rate_at(0.0, 0.1) < rate_at(0.05, 0.1) < rate_at(0.1, 0.1) == 1.0
    assert rate_at(1.0, 0.1) == pytest.approx(0.0)


def test_targets_are_the_next_characters(corpus: Corpus) -> None:
    inputs, targets = batch_of(corpus.train, 3, 10, torch.Generator().manual_seed(0))
    assert inputs[:, 1:].equal(targets[:, :-1])


def test_sampled_logits_are_those_of_every_form(model: LanguageModel, corpus: Corpus, retnet: ModuleType) -> None:
    sampled = sample(model, corpus, "def ", 50)
    rows = equalities(model, SMALL, retnet, sampled)
    assert [(row.form, row.dtype) for row in rows] == [
        ("step, as sampled", "float32"),
        ("step", "float32"),
        ("recurrent", "float32"),
        ("chunk", "float32"),
        ("step", "float64"),
        ("recurrent", "float64"),
        ("chunk", "float64"),
    ]
    assert all(row.ok and row.same == row.characters == 50 for row in rows)


def test_a_difference_is_seen(model: LanguageModel, corpus: Corpus) -> None:
    sampled = sample(model, corpus, "def ", 20)
    assert not compared("off", sampled.logits * 1.0001, sampled.logits, sampled, torch.float32).ok
    assert not Equality("nan", "float32", 0.0, float("nan"), 1e-5, 0, 1).ok


def test_sampling_is_repeatable_and_follows_the_logits(model: LanguageModel, corpus: Corpus) -> None:
    first, second = sample(model, corpus, "def ", 30, seed=3), sample(model, corpus, "def ", 30, seed=3)
    assert first.text == second.text
    sure = torch.full((2, 5), -1e4)
    sure[0, 3], sure[1, 0] = 0.0, 0.0
    assert drawn(sure, torch.tensor([0.01, 0.99], dtype=torch.float64), 1.0).tolist() == [3, 0]
