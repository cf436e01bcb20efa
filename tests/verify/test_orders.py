"""The search for an order: it takes the same steps again, ends where nothing spills, and writes down what it found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recgen.algebra.derive import derive
from recgen.loader.source import resolve
from recgen.plan.passes import plan
from recgen.plan.tiles import with_orders
from recgen.verify import orders
from recgen.verify.orders import FAILED, Trial, improved, main

CONFIG = (32, 128, 8, 2)
KERNEL = "_chunk_backward_writes"


class Rated(Trial):
    """Spills as much as `d_value` begins late; one order does not compile."""

    def spilled(self, order: list[str]) -> int:
        place = order.index("d_value")
        return FAILED if order[0] == "d_value" else max(0, place - 12) * 8


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    derivation = derive(resolve("gla"), prove=False)
    return Rated(derivation, plan(derivation), KERNEL, "sm_90", 128, CONFIG, tmp_path_factory.mktemp("orders"))


def test_it_ends_with_the_first_order_that_spills_nothing(trial: Trial) -> None:
    found = list(improved(trial, 2000, 0))
    spilled = [bytes_ for _, bytes_, _ in found]
    assert len(found) > 1 and spilled == sorted(set(spilled), reverse=True) and spilled[-1] == 0
    assert found == list(improved(trial, 2000, 0))
    assert found[-1][2] == trial.order(found[-1][2]), "it is an order that the emitter keeps to"


def test_it_begins_with_the_order_that_is_known(trial: Trial, tmp_path: Path) -> None:
    *_, (_, _, best) = improved(trial, 2000, 0)
    planned = with_orders(trial.planned, {KERNEL: tuple(best)})
    known = Rated(trial.derivation, planned, KERNEL, "sm_90", 128, CONFIG, tmp_path)
    assert list(improved(known, 2000, 0)) == [(0, 0, best)]


def test_a_find_is_filed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(orders, "Trial", Rated)
    assert main(["gla", "--kernel", KERNEL, "--tries", "2000", "--out", str(tmp_path)]) == 0
    order = json.loads((tmp_path / "gla.json").read_text())["orders"][KERNEL]
    assert order.index("d_value") <= 12
    assert capsys.readouterr().out.splitlines()[-1] == str(tmp_path / "gla.json")


def test_without_a_find_nothing_is_filed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(orders, "Trial", Rated)
    assert main(["gla", "--kernel", KERNEL, "--tries", "1", "--out", str(tmp_path)]) == 1
    assert "try another --seed" in capsys.readouterr().out and not list(tmp_path.iterdir())


def test_a_kernel_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["retnet", "--kernel", "_chunk", "--out", str(tmp_path)])
    assert stopped.value.code == 2
    assert "--kernel: retnet has no '_chunk'; it has _segment_ends, _chunk_forward, " in capsys.readouterr().err
