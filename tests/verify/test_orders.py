"""The search for an order: it takes the same steps again, ends where nothing spills, and writes down what it found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recgen import resources
from recgen.algebra.derive import derive
from recgen.loader.source import resolve
from recgen.verify.orders import FAILED, Trial, improved, record


class Rated(Trial):
    """Spills as much as `d_value` begins late; one order does not compile."""

    def spilled(self, order: list[str]) -> int:
        place = order.index("d_value")
        return FAILED if order[0] == "d_value" else max(0, place - 12) * 8


@pytest.fixture(scope="module")
def trial() -> Trial:
    derivation = derive(resolve("simple_gla"), prove=False)
    return Rated(derivation, "_chunk_backward_writes", "sm_90", 128, (32, 128, 8, 2))


def test_it_ends_with_the_first_order_that_spills_nothing(trial: Trial) -> None:
    found = list(improved(trial, 2000, 0))
    spilled = [bytes_ for _, bytes_, _ in found]
    assert len(found) > 1 and spilled == sorted(set(spilled), reverse=True) and spilled[-1] == 0
    assert found == list(improved(trial, 2000, 0))
    assert found[-1][2] == trial.order(found[-1][2]), "it is an order that the emitter keeps to"


def test_a_find_is_filed_in_the_place_of_tiles_of_what_was_emitted_before(trial: Trial, tmp_path: Path) -> None:
    known = json.loads((resources.tiles_dir() / "simple_gla.json").read_text())
    (tmp_path / "simple_gla.json").write_text(json.dumps(known | {"orders": {"_chunk_forward": ["c"]}}))
    written = json.loads(record("simple_gla", trial, ["a", "b"], tmp_path).read_text())
    assert known["tiles"] and written["tiles"] == {}
    assert written["orders"] == {"_chunk_forward": ["c"], "_chunk_backward_writes": ["a", "b"]}


def test_an_order_is_not_filed_with_other_kernels(trial: Trial, tmp_path: Path) -> None:
    (tmp_path / "simple_gla.json").write_text(json.dumps({"plans": ["other"], "triton": "3.7.1", "tiles": {}}))
    with pytest.raises(ValueError, match="tiles of other kernels"):
        record("simple_gla", trial, ["a"], tmp_path)
