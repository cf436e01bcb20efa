"""The scan kernels compile for GPUs that are not here, address memory in 64 bits, and offer many programs at once."""

from __future__ import annotations

import queue

import pytest

from recgen.cost.compile import Result
from recgen.targets import TARGETS
from tests.generated.catalogue import emitted
from tests.generated.offline_jobs import Asked, answers, job

pytestmark = pytest.mark.offline

OPERATORS = ("full_gate", "mamba", "hgrn", "rg_lru", "rwkv4")
MATRIX = ((3, 64, 64), (1, 1, 17), (2, 256, 40))
VECTOR = ((1, 1, 64), (1, 1, 1), (1, 1, 1000))  # V is the width of the channels
WIDTHS = ("first width", "second width", "third width")
MODES = ("chunk", "recurrent", "step")
KERNELS = {
    "_scan_ends",
    "_hand_over",
    "_scan_forward",
    "_scan_ends_backward",
    "_scan_backward",
    "_recurrent_forward",
    "_step_forward",
}


def jobs() -> list[Asked]:
    """Three widths of every operator for every target, alternately in float32 and bfloat16."""
    found = []
    for n, name in enumerate(OPERATORS):
        for m, target in enumerate(TARGETS):
            for k, (H, K, V) in enumerate(VECTOR if "D" in emitted(name).STATE["S"] else MATRIX):
                sizes, dtype = {"B": 2, "T": 100, "H": H, "K": K, "V": V}, ("float32", "bfloat16")[(n + m + k) % 2]
                found += [job(name, target, mode, WIDTHS[k], sizes, dtype=dtype) for mode in MODES]
    long = {"B": 1, "T": 32768, "H": 1, "K": 1, "V": 1024}
    return [*found, job("hgrn", "sm_90", "chunk", "long", long, dtype="bfloat16")]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[Result]:
    batches: queue.SimpleQueue[list[Asked]] = queue.SimpleQueue()
    batches.put(jobs())
    found = answers(batches, tmp_path_factory.mktemp("triton"))
    assert [r for r in found if r["error"]] == []
    return found


@pytest.mark.parametrize("name", OPERATORS)
def test_scans_compile_for_every_target(results: list[Result], name: str) -> None:
    for target in TARGETS:
        for width in WIDTHS:
            wanted = {"operator": name, "target": target, "topic": width}
            found = [k for r in results if wanted.items() <= r.items() for k in r["kernels"]]
            assert {k["name"] for k in found} == KERNELS
            assert all(k["shared"] <= TARGETS[target].shared and not k["narrow"] for k in found)


def test_a_long_vector_scan_offers_at_least_128_programs(results: list[Result]) -> None:
    (long,) = (r for r in results if r["topic"] == "long")
    assert {k["name"]: k["grid"] for k in long["kernels"] if k["grid"] < 128} == {}
