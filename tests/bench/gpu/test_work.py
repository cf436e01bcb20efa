"""One comparison: whom it has, and what becomes of a contender that cannot run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from recgen.bench.gpu.plan import DRY, Job
from recgen.bench.gpu.timing import StandIn
from recgen.bench.gpu.work import units
from recgen.verify.profile import load_module

from .conftest import GENERATED

SHAPE = DRY.shapes[1]
OURS = ("auto", "fused", "split")


def compare(module: ModuleType, operator: str = "simple_gla", obstacle: str = "not today") -> dict[str, Any]:
    job = Job("time", operator, shape=SHAPE, obstacle=obstacle)
    ((_, work),) = units(job, module, DRY, StandIn, "cpu")
    return work()


def test_every_schedule_is_a_contender() -> None:
    found = compare(load_module(GENERATED / "simple_gla.py"))
    assert list(found["both"]) == [*OURS, "softmax", "copy"]
    assert found["notes"] == ["fla is left out: not today"] and not found["failed"]


@pytest.mark.parametrize(
    ("change", "notes", "failed"),
    [
        ("raise torch.OutOfMemoryError('60 GiB')", [f"{s}: out of memory" for s in OURS], []),
        ("raise ValueError('too wide')", [f"{s}: refused: too wide" for s in OURS], []),
        ("raise RuntimeError('out of resource')", [], [f"{s}: RuntimeError: out of resource" for s in OURS]),
    ],
)
def test_what_does_not_fit_is_noted_and_what_breaks_has_failed(
    change: str, notes: list[str], failed: list[str], tmp_path: Path, changed: Callable[..., None]
) -> None:
    changed(tmp_path, "simple_gla", change)
    found = compare(load_module(tmp_path / "simple_gla.py"))
    assert found["notes"] == ["fla is left out: not today", *notes] and found["failed"] == failed
    assert list(found["both"]) == ["softmax", "copy"], "the others go on"


def test_a_peer_is_timed_and_held_against_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    module = load_module(GENERATED / "gla.py")
    library = ModuleType("fla.ops.gla")

    def chunk_gla(q: Any, k: Any, v: Any, g: Any, scale: float) -> Any:
        """Right but for its size, as a function of other mathematics would not be."""
        g = g.float()
        decay = (g.cumsum(1)[:, :, None] - g.cumsum(1)[:, None]).exp()  # [B, t, i, H, K]
        causal = torch.ones(q.shape[1], q.shape[1]).tril()[None, :, :, None]
        scores = torch.einsum("bthm,bihm,btihm->btih", q.float(), k.float(), decay.nan_to_num(posinf=0)) * causal
        return 1.25 * scale * torch.einsum("btih,bihc->bthc", scores, v.float()).to(v), None

    library.chunk_gla = chunk_gla
    for name in ("fla", "fla.ops"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "fla.ops.gla", library)
    monkeypatch.setattr("recgen.bench.gpu.work.tune_briefly", lambda: None)
    found = compare(module, "gla", obstacle="")
    assert list(found["both"]) == [*OURS, "softmax", "copy", "fla"]
    assert found["difference"] == pytest.approx(0.25, abs=0.02)
    assert compare(load_module(GENERATED / "mlstm.py"), "mlstm", obstacle="")["notes"] == [
        "fla is left out: flash-linear-attention has no function of the mathematics of mlstm"
    ]


def test_what_is_timed_at_a_width_is_compiled_for_it() -> None:
    module = load_module(GENERATED / "simple_gla.py")
    labels = [label for label, _ in units(Job("compile", "simple_gla", width=16), module, DRY, StandIn, "cpu")]
    assert labels == [*(f"{s} {DRY.shapes[0]}" for s in OURS), "one token"]
    labels = [label for label, _ in units(Job("compile", "simple_gla", width=8), module, DRY, StandIn, "cpu")]
    assert labels == [f"{s} {DRY.shapes[1]}" for s in OURS]
