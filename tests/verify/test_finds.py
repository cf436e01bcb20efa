"""The file of what was found for an operator's kernels: what of it is kept when they change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import triton

from recgen import resources
from recgen.plan.tiles import kernels_digest, known_tiles
from recgen.verify.finds import Finds, code_of
from tests.plan.conftest import plan_of

GENERATED = Path(__file__).parents[2] / "generated"
TILES = {"sm_90": {"128": {"_chunk_forward": [[32, 128, 8, 2]]}}}


def written(folder: Path, **changed: object) -> Finds:
    content = {"plans": [kernels_digest(plan_of("retnet"))], "triton": triton.__version__, "tiles": TILES}
    (folder / "retnet.json").write_text(json.dumps(content | {"orders": {"_chunk_forward": ["o"]}} | changed))
    return Finds.of("retnet", plan_of("retnet"), folder)


def test_what_was_found_for_these_kernels_is_there(tmp_path: Path) -> None:
    finds = written(tmp_path)
    assert finds.tiles("sm_90", 128) == TILES["sm_90"]["128"]
    assert finds.tiles("sm_90", 64) is None and finds.tiles("sm_80", 128) is None
    assert finds.orders == {"_chunk_forward": ("o",)}


@pytest.mark.parametrize("changed", [{"plans": ["other"]}, {"triton": "3.3.0"}], ids=["kernels", "Triton"])
def test_tiles_of_other_kernels_or_another_triton_are_not_but_orders_are(
    tmp_path: Path, changed: dict[str, object]
) -> None:
    finds = written(tmp_path, **changed)
    assert finds.tiles("sm_90", 128) is None
    assert finds.orders == {"_chunk_forward": ("o",)}
    finds.add_tiles("sm_80", 64, {"_chunk_forward": [[16, 64, 8, 2]]})
    kept = json.loads((tmp_path / "retnet.json").read_text())
    assert kept["plans"] == [kernels_digest(plan_of("retnet"))] and kept["triton"] == triton.__version__
    assert kept["tiles"] == {"sm_80": {"64": {"_chunk_forward": [[16, 64, 8, 2]]}}}
    assert kept["orders"] == {"_chunk_forward": ["o"]}


def test_a_new_order_takes_the_tiles_away(tmp_path: Path) -> None:
    finds = written(tmp_path)
    finds.add_order("_segment_ends", ["a", "b"])
    kept = json.loads((tmp_path / "retnet.json").read_text())
    assert kept["tiles"] == {}
    assert kept["orders"] == {"_chunk_forward": ["o"], "_segment_ends": ["a", "b"]}


def test_tiles_of_other_code_are_forgotten(tmp_path: Path) -> None:
    finds = written(tmp_path, code="of then")
    finds.only_for("of then")
    assert finds.tiles("sm_90", 128)
    finds.only_for("of now")
    assert finds.tiles("sm_90", 128) is None and finds.orders


def test_the_code_of_kernels_is_what_is_compiled() -> None:
    module = (GENERATED / "retnet.py").read_text(encoding="utf-8")
    kernel, _, rest = module.partition("    chunks = tl.cdiv(length, CHUNK)\n")
    assert code_of(f"{kernel}    # a comment\n    chunks = tl.cdiv(length, CHUNK)\n{rest}") == code_of(module)
    assert code_of(f"{kernel}    chunks = tl.cdiv(length + 1, CHUNK)\n{rest}") != code_of(module)
    assert code_of(module.replace("SEGMENT = 256", "SEGMENT = 512")) == code_of(module)


def test_nothing_is_known_of_a_new_operator(tmp_path: Path) -> None:
    finds = Finds.of("retnet", plan_of("retnet"), tmp_path)
    assert finds.tiles("sm_90", 128) is None and not finds.orders


@pytest.mark.parametrize("path", sorted(resources.tiles_dir().glob("*.json")), ids=lambda path: path.stem)
def test_what_is_shipped_is_of_kernels_and_variables_that_there_are(path: Path) -> None:
    plan = plan_of(path.stem)
    known = known_tiles(plan)
    assert known is not None, "the tiles are of kernels that are no longer emitted"
    module = (GENERATED / f"{path.stem}.py").read_text(encoding="utf-8")
    assert json.loads(path.read_text())["code"] == code_of(module), "search again: the kernels' code has changed"
    names = {k.name for k in plan.kernels}
    assert set(known.orders) <= names
    for widths in known.found.values():
        assert all(set(kernels) <= names for kernels in widths.values())
