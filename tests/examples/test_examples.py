"""The examples run in short form, and do what they show; beside each script is what it printed in full."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch

import recgen

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "examples"
CAUSAL = [path for path in sorted((ROOT / "generated").glob("*.py")) if path.stem != "linear_attention_global"]


def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)


def losses(printed: str) -> list[float]:
    return [float(loss) for loss in re.findall(r"^step +\d+ +(\d+\.\d+) bits per byte", printed, re.MULTILINE)]


def accuracies(printed: str) -> dict[str, tuple[float, float]]:
    rows = re.findall(r"^(\w+) +([\d.]+)% +([\d.]+)%", printed, re.MULTILINE)
    return {name: (float(short), float(long)) for name, short, long in rows}


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Imports a script of the examples, which import each other as scripts do."""
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module


def test_it_learns_bytes() -> None:
    done = run("train_bytes.py", "generated/gla.py", "--steps", "40", "--sample", "20")
    assert done.returncode == 0, done.stderr
    seen = losses(done.stdout)
    assert len(seen) == 10 and seen[-1] < 4 < 5 < seen[0]
    assert "\ndef " in done.stdout


@pytest.mark.parametrize("path", CAUSAL, ids=lambda path: path.stem)
def test_every_causal_operator_fits_and_goes_on_from_its_state(path: Path, script: Callable[[str], ModuleType]) -> None:
    torch.manual_seed(0)
    model = script("train_bytes").LanguageModel(recgen.load_file(path), width=16, heads=2, layers=1)
    tokens = torch.randint(256, (2, 12))
    whole, _ = model(tokens)
    whole.square().mean().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
    _, states = model(tokens[:, :11])
    last, _ = model(tokens[:, 11:], states)
    assert torch.allclose(last[:, 0], whole[:, 11], atol=1e-5)


def test_one_that_reads_ahead_is_refused() -> None:
    done = run("train_bytes.py", "generated/linear_attention_global.py")
    assert done.returncode == 2
    assert "cannot predict the next byte" in done.stderr


def test_the_invention_is_short_verified_and_learns() -> None:
    done = run("invent.py", "linear_attention", "--steps", "80", "--examples", "1")
    assert done.returncode == 0, done.stderr
    assert "slots: verified" in done.stdout
    assert len((EXAMPLES / "slots.yaml").read_text(encoding="utf-8").splitlines()) <= 12
    scores = accuracies(done.stdout)
    assert scores["slots"][0] > 100 / 8 * 2 and "linear_attention" in scores


def test_the_answers_are_those_last_written(script: Callable[[str], ModuleType]) -> None:
    invent = script("invent")
    tokens, answers = invent.examples_of(3, 40, torch.Generator().manual_seed(0))
    for row, wanted in zip(tokens.tolist(), answers.tolist(), strict=True):
        table: dict[int, int] = {}
        for token, answer in zip(row, wanted, strict=True):
            asks = token >= invent.KEYS * invent.VALUES
            assert answer == (table.get(token % invent.KEYS, invent.NOT_ASKED) if asks else invent.NOT_ASKED)
            if not asks:
                table[token // invent.VALUES] = token % invent.VALUES


def test_a_model_of_transformers_is_the_same_with_the_generated_operator(
    script: Callable[[str], ModuleType], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformers", reason="the model is one of transformers: pip install 'recgen[examples]'")
    replacement = script("replace_in_transformers")
    replacement.main()
    assert "generated  the same tokens" in capsys.readouterr().out

    operator, step = replacement.mamba2.operator, replacement.mamba2.step
    faults = {
        "operator": lambda *tensors, **options: operator(*tensors, scale=1.01, **options),
        "step": lambda *tensors, state: (step(*tensors)[0], state),
    }
    for name, fault in faults.items():
        with monkeypatch.context() as wrong, pytest.raises(SystemExit, match="not the one"):
            wrong.setattr(replacement.mamba2, name, fault)
            replacement.main()


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_what_it_printed_is_beside_it(path: Path) -> None:
    assert path.with_suffix(".txt").read_text(encoding="utf-8").strip()
    assert len(path.read_text(encoding="utf-8").splitlines()) < 150


def test_what_was_printed_shows_the_point() -> None:
    seen = losses((EXAMPLES / "train_bytes.txt").read_text(encoding="utf-8"))
    assert len(seen) == 10 and seen[-1] < 3 < seen[0]
    printed = (EXAMPLES / "invent.txt").read_text(encoding="utf-8")
    assert printed.startswith((EXAMPLES / "slots.yaml").read_text(encoding="utf-8"))
    scores = accuracies(printed)
    assert all(scores["slots"][1] > scores[other][1] for other in ("linear_attention", "mamba2", "gla"))
    assert "the same tokens" in (EXAMPLES / "replace_in_transformers.txt").read_text(encoding="utf-8")
