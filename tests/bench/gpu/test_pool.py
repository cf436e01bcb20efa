"""Processes that do jobs: what one that hangs or cannot begin costs, and what is left at the deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from recgen.bench.gpu.plan import Batch, Job
from recgen.bench.gpu.pool import Setting, run

Heard = list[tuple[str, str, dict[str, Any]]]


def do(batches: list[Batch], modules: Path, seconds: float = 150, unit: float = 60) -> tuple[list[Batch], Heard]:
    heard: Heard = []
    left = run(
        batches,
        Setting(True, str(modules)),
        2,
        time.monotonic() + seconds,
        unit,
        lambda job, label, result: heard.append((job.operator, label, result)),
    )
    return left, heard


def test_what_hangs_is_ended_and_the_rest_is_done(tmp_path: Path, changed: Callable[..., None]) -> None:
    case = "(options['schedule'], o.dtype, o.shape[1]) == ('fused', torch.float32, 1)"
    changed(tmp_path, "hanging", f"import time; {case} and time.sleep(600)")
    left, heard = do([Batch((Job("check", "hanging", "core"),))], tmp_path, unit=8)
    assert left == []
    assert [(label, result["crash"]) for _, label, result in heard if "crash" in result] == [
        ("chunk/fused float32 T=1", "no answer within 8 seconds")
    ]
    assert len(heard) == len({label for _, label, _ in heard}) > 20


def test_a_module_that_cannot_be_opened_costs_its_own_job_only(tmp_path: Path, changed: Callable[..., None]) -> None:
    changed(tmp_path, "right")
    (tmp_path / "broken.py").write_text("raise RuntimeError('not today')\n")
    jobs = (Job("check", "broken", "core"), Job("check", "right", "wide"))
    left, heard = do([Batch(jobs)], tmp_path)
    assert left == []
    assert heard[0][:2] == ("broken", "") and "RuntimeError: not today" in heard[0][2]["crash"]
    assert {name for name, _, _ in heard[1:]} == {"right"} and all(result["ok"] for _, _, result in heard[1:])


def test_what_is_left_can_be_done_later(tmp_path: Path, changed: Callable[..., None]) -> None:
    changed(tmp_path, "slow", "import time; time.sleep(0.5)")
    whole = Batch((Job("check", "slow", "wide"),))
    assert do([whole], tmp_path, seconds=0.2)[0] == [whole]
    left, early = do([whole], tmp_path, seconds=7)
    rest, late = do(left, tmp_path)
    assert rest == []
    labels = [label for _, label, _ in early + late]
    assert len(labels) == len(set(labels)) == 6, "each once"
