"""The demo from end to end, each part with its share of one progress bar."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from recgen.demo.corpus import Corpus, read_corpus
from recgen.demo.costs import Lengths, measure
from recgen.demo.equality import equalities
from recgen.demo.model import LanguageModel, Size
from recgen.demo.operators import OPERATORS, Made, make
from recgen.demo.report import Findings, render
from recgen.demo.sampling import sample
from recgen.demo.threads import fitting, threads
from recgen.demo.training import History, Schedule, evaluate, train
from recgen.files import write_atomically

TRAINED = "retnet"


@dataclass(frozen=True)
class Plan:
    """How much the demo does. The defaults take two to three minutes on two slow cores."""

    operators: tuple[str, ...] = OPERATORS
    examples: int = 4
    size: Size = field(default_factory=Size)
    schedule: Schedule = field(default_factory=Schedule)
    prompt: str = "def read"
    characters: int = 500
    lengths: Lengths = field(default_factory=Lengths)


def run(out: Path, plan: Plan | None = None) -> Path:
    """Run the whole demo and write its report to `out`.

    Raises SystemExit, after the report is written, when an operator is not verified or the forms' logits differ.
    """
    plan, console, started = plan or Plan(), Console(), time.perf_counter()
    out = Path(out)
    with TemporaryDirectory() as folder:
        with _task(console, "operators") as progress, threads(1):
            operators = make_all(plan, Path(folder), progress)
        trained = next(made for made in operators if made.spec.name == TRAINED)
        corpus = read_corpus()
        torch.manual_seed(plan.schedule.seed)
        model = LanguageModel(len(corpus.alphabet), plan.size, trained.module)
        workers = fitting(lambda: evaluate(model, corpus, plan.schedule))
        with _task(console, "training") as progress, threads(workers):
            history = learn(model, corpus, plan, progress)
        with _task(console, "sampling") as progress, threads(1):
            progress(0.0, f"{plan.characters} characters, step by step")
            sampled = sample(model, corpus, plan.prompt, plan.characters)
            progress(0.6, "the same logits by every form")
            rows = equalities(model, plan.size, trained.module, sampled)
            progress(1.0, "sampled and compared")
        with _task(console, "measuring") as progress, threads(workers):
            costs = measure(
                trained.module, plan.lengths, report=lambda share: progress(share, "time and memory by length")
            )
    findings = Findings(
        operators=operators,
        trained=trained,
        parameters=model.parameter_count,
        alphabet=len(corpus.alphabet),
        history=history,
        sample=sampled,
        equalities=rows,
        costs=costs,
        threads=workers,
        seconds=time.perf_counter() - started,
    )
    write_atomically(out, render(findings))
    if findings.failures:
        raise SystemExit("\n".join([*findings.failures, f"wrote {out}"]))
    return out


def make_all(plan: Plan, folder: Path, progress: Callable[[float, str], None]) -> list[Made]:
    """Every operator of the plan, generated and verified."""

    def within_all(n: int, share: float, what: str) -> None:
        progress((n + share) / len(plan.operators), what)

    return [make(name, folder, plan.examples, partial(within_all, n)) for n, name in enumerate(plan.operators)]


def learn(model: LanguageModel, corpus: Corpus, plan: Plan, progress: Callable[[float, str], None]) -> History:
    """Train the model; the bar shows the loss."""
    return train(model, corpus, plan.schedule, lambda share, loss: progress(share, f"{loss:.2f} bits per character"))


@contextmanager
def _task(console: Console, name: str) -> Iterator[Callable[[float, str], None]]:
    columns = (
        TextColumn("{task.fields[part]:<10}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=1.0, part=name)
        yield lambda share, what: bar.update(task, completed=share, description=what)
        bar.update(task, completed=1.0)
