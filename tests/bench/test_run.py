"""The benchmark as a whole, at sizes that take seconds; its promises are for a quiet machine and not judged here."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import recgen
from recgen import bench
from recgen.bench import PROMISES, Bench, Effort, Size, compare
from recgen.bench.clock import Times, Work, wall
from recgen.bench.compare import FULL, QUICK
from recgen.bench.contenders import Place, generated, softmax_written_out
from recgen.bench.memory import growth, peak_bytes
from recgen.bench.results import Comparison, Memory, Results

TINY = Effort((64, 128), (2, 1), 32, 1, (64, 128), 128, (16, 64), 5)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "QUICK", TINY)


def test_it_prints_both_tables_and_writes_what_it_measured(
    tiny: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = bench.run(["simple_gla"], tmp_path / "results" / "bench.json", quick=True)
    printed = capsys.readouterr().out
    assert "Time of forward, backward, both and one token" in printed and "Peak memory" in printed
    written = json.loads((tmp_path / "results" / "bench.json").read_text(encoding="utf-8"))
    both_ways = ("forward", "backward", "both")
    assert [(c["what"], c["against"], c["length"]) for c in written["comparisons"]] == [
        *((what, "softmax", length) for length in (64, 128) for what in both_ways),
        *((what, "token loop", 32) for what in both_ways),
        ("one token", "softmax", 16),
        ("one token", "softmax", 64),
    ]
    assert {c["operator"] for c in written["comparisons"]} == {"simple_gla"}
    low, high = written["comparisons"][0]["speedup_quartiles"]
    assert 0 < low <= high
    assert "simple_gla is not compared with fla" in " ".join(printed.split()) or written["notes"] == []
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


SMALL = Size(H=2, K=16, V=16)


def compared(name: str, size: Size = SMALL) -> list[Comparison]:
    return list(Bench(size, TINY).compare(name, recgen.load(name)))


def test_every_operator_runs_against_softmax_and_its_own_loop() -> None:
    found = compared("linear_attention")
    assert [c.against for c in found if c.what == "both"] == ["softmax", "softmax", "token loop"]
    assert all(c.wanted is None for c in found), "quick sizes promise nothing"


@pytest.mark.parametrize("name", ["rwkv4", "linear_attention_global"])
def test_what_has_channels_or_no_step_is_measured_too(name: str) -> None:
    passes = {c.what for c in compared(name)}
    assert {"forward", "backward", "both"} <= passes
    assert ("one token" in passes) == hasattr(recgen.load(name), "step")


def test_both_passes_are_the_sum_of_each_round() -> None:
    forward, backward, both = compared("simple_gla")[:3]
    assert [c.what for c in (forward, backward, both)] == ["forward", "backward", "both"]
    for which in ("operator_seconds", "against_seconds"):
        parts = zip(getattr(forward, which).seconds, getattr(backward, which).seconds, strict=True)
        assert getattr(both, which).seconds == tuple(a + b for a, b in parts)


def test_a_promise_is_judged_at_the_promised_sizes_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(compare.PROMISES, ("simple_gla", "softmax", 64), 1e9)
    assert all(c.ok for c in compared("simple_gla"))
    promised = [c for c in compared("simple_gla", Size()) if c.wanted is not None]
    assert [(c.what, c.length, c.ok) for c in promised] == [("both", 64, False)]


class Pretended:
    """A GPU that is the CPU: what is tested is who runs there, in which dtype, and that the meter is asked."""

    def stopwatch(self, work: Work) -> Callable[[], float]:
        return wall(work)

    def peak(self, work: Work) -> int:
        work()
        return 7


def test_on_a_gpu_inputs_are_bfloat16_and_its_own_meter_measures() -> None:
    made = Bench(SMALL, TINY, Place("cpu", torch.bfloat16), Pretended())
    module = recgen.load("simple_gla")
    found = list(made.compare("simple_gla", module))
    assert {c.against for c in found} >= {"softmax", "token loop"}
    assert not any(c.wanted for c in found)
    contenders = list(made.memory_contenders({"simple_gla": module}))
    assert [name for name, _, _ in contenders] == ["simple_gla", "softmax, fused"], "written out it would not fit"
    assert {made.memory(*contender).peaks for contender in contenders} == {(7, 7)}
    passes = contenders[0][2](SMALL)
    assert {x.dtype for x in passes.inputs} == {torch.bfloat16}


def test_two_specs_of_one_name_are_told_apart(tiny: None, tmp_path: Path) -> None:
    spec = "name: simple_gla\ninputs: {g: B T H}\ndecay: {type: gated, log: logsigmoid(g) / 2}\n"
    (tmp_path / "mine.yaml").write_text(spec)
    results = bench.run(["simple_gla", tmp_path / "mine.yaml"], quick=True)
    assert {c.operator for c in results.comparisons} == {"simple_gla", "simple_gla (2)"}


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
    for effort in (QUICK, FULL):
        assert len(effort.lengths) == len(effort.rounds)
    assert {length for _, _, length in PROMISES} <= {*FULL.lengths, FULL.loop_length}
