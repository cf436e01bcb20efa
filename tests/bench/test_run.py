"""The benchmark as a whole, at sizes that take seconds; its promises are for a quiet machine and not judged here."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import recgen
from recgen import bench
from recgen.bench import PROMISES, QUICK, Effort, Size, compare
from recgen.bench.clock import Times
from recgen.bench.contenders import generated, softmax_written_out
from recgen.bench.memory import growth, peak_bytes
from recgen.bench.results import Comparison, Memory, Results

TINY = Effort((64, 128), (2, 1), 32, 1, (64, 128), 128)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "QUICK", TINY)


def test_it_prints_both_tables_and_writes_what_it_measured(
    tiny: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = bench.run(["simple_gla"], tmp_path / "results" / "bench.json", quick=True)
    printed = capsys.readouterr().out
    assert "Forward + backward" in printed and "Peak memory" in printed
    written = json.loads((tmp_path / "results" / "bench.json").read_text(encoding="utf-8"))
    assert [(c["operator"], c["against"], c["length"]) for c in written["comparisons"]] == [
        ("simple_gla", "softmax", 64),
        ("simple_gla", "softmax", 128),
        ("simple_gla", "token loop", 32),
    ]
    assert [m["name"] for m in written["memory"]] == ["simple_gla", "softmax, fused", "softmax, written out"]
    assert written["ok"] and results.ok, "nothing is promised at these lengths"


def test_the_promises_are_the_published_ones() -> None:
    assert PROMISES == {
        ("simple_gla", "softmax", 2048): 1.0,
        ("simple_gla", "softmax", 8192): 3.0,
        ("gla", "token loop", 2048): 15.0,
    }
    assert Size() == Size(B=1, T=2048, H=8, K=64, V=64)


def test_a_missed_promise_is_said() -> None:
    slow, fast = Times((2.0, 2.0)), Times((1.0, 1.0))
    kept = Comparison("simple_gla", "softmax", 2048, fast, slow, wanted=1.0)
    missed = replace(kept, operator_seconds=slow, against_seconds=fast)
    assert kept.ok and kept.speedup[0] == 2.0
    assert not missed.ok and missed.speedup[0] == 0.5
    assert not Results({}, 1, (kept, missed), (Memory("m", (1, 2), (1, 2)),)).ok


def test_every_operator_runs_against_softmax_and_its_own_loop() -> None:
    found = list(compare("linear_attention", recgen.load("linear_attention"), Size(H=2, K=16, V=16), TINY))
    assert [c.against for c in found] == ["softmax", "softmax", "token loop"]
    assert all(c.wanted is None for c in found), "quick sizes promise nothing"


@pytest.mark.parametrize("name", ["linear_attention", "retnet", "learned_decay", "simple_gla", "gla"])
def test_memory_of_forward_and_backward_grows_linearly(name: str) -> None:
    module, size, lengths = recgen.load(name), Size(H=2, K=32, V=32), [512, 1024, 2048]
    peaks = [float(peak_bytes(generated(module, size.at(n)))) for n in lengths]
    assert growth(lengths, peaks) < 1.05


def test_softmax_written_out_is_quadratic_in_memory() -> None:
    lengths = [512, 1024]
    assert growth(lengths, [float(peak_bytes(softmax_written_out(Size(H=1, K=8, V=8).at(n)))) for n in lengths]) > 1.9


def test_quick_lengths_are_short() -> None:
    assert max(QUICK.lengths + QUICK.memory_lengths) <= 1024
