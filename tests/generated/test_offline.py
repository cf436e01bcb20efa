"""Every kernel compiles for GPUs that are not here, fits their shared memory, and addresses memory in 64 bits.

Two processes of `recgen.cost.compile` do the work; under pytest-xdist the first test process that gets here starts
them, and the others read the results.
"""

from __future__ import annotations

import fcntl
import json
import os
import queue
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from recgen.cost.compile import Result
from recgen.cost.jobs import keys_at
from tests.generated.catalogue import CARRYING, OPERATORS, REPRESENTATIVES, emitted, profile
from tests.generated.offline_jobs import Asked, answers, job

pytestmark = pytest.mark.offline

EVERYTHING = os.environ.get("RECGEN_OFFLINE") == "all"  # as `make compile` asks
SAMPLE = (*REPRESENTATIVES, "linear_attention_global")
CHUNKWISE = [name for name in OPERATORS if emitted(name).SCHEDULES != ("scan",)]  # test_scan_offline has the others
NAMES = CHUNKWISE if EVERYTHING else SAMPLE
WORKERS = 2
TARGETS = ("sm_80", "sm_90", "sm_100", "gfx942")
WIDTHS = (64, 128, 256)
DTYPES = ("float32", "bfloat16")
MODES = {name: ("chunk", "recurrent", "step") if name in CARRYING else ("chunk",) for name in NAMES}
SHARED = {"sm_80": 166912, "sm_90": 232448, "sm_100": 232448, "gfx942": 65536}
USUAL = {"B": 2, "T": 100, "H": 3, "K": 64, "V": 64}
SMALL = {"B": 2, "T": 5, "H": 3, "K": 16, "V": 16}


def widths_and_dtypes(operator: str, target: str) -> list[tuple[int, str]]:
    """Head sizes 64, 128 and 256 in float32 and bfloat16. Without EVERYTHING each pair of target and operator takes one
    of the six in turn, so that each of the six meets several operators and targets."""
    pairs = [(width, dtype) for width in WIDTHS for dtype in DTYPES]
    turn = TARGETS.index(target) + NAMES.index(operator)
    return pairs if EVERYTHING else [pairs[turn % len(pairs)]]


def width_jobs(operator: str, target: str, width: int, dtype: str) -> list[Asked]:
    """Both kernels; they share their backward ones. As many key channels as make at most `width` features."""
    sizes = {**USUAL, "K": keys_at(profile(emitted(operator)), width), "V": width}
    return [job(operator, target, mode, "width", sizes, dtype=dtype) for mode in MODES[operator]]


def integer_jobs(operator: str, target: str) -> list[Asked]:
    """Each count set to 1, 16 and 17 in turn: Triton makes a constant of 1, and assumes divisibility of 16."""
    cases: list[tuple[dict[str, int], int | None]] = [({**SMALL, axis: n}, None) for axis in "THB" for n in (1, 16, 17)]
    cases += [({**SMALL, "B": 1, "T": n}, n) for n in (1, 16, 17)]
    return [
        job(operator, target, mode, "integer", sizes, documents=documents, chunk_size=16)
        for sizes, documents in cases
        for mode in MODES[operator]
    ]


def narrow_jobs(operator: str, target: str) -> list[Asked]:
    """Widths for which matrix products are too small, or no power of two."""
    sizes = [{**SMALL, "K": K, "V": V} for K, V in ((1, 1), (2, 17), (17, 4), (8, 16))]
    return [job(operator, target, mode, "narrow", s, chunk_size=16) for s in sizes for mode in MODES[operator]]


def length_jobs(operator: str, target: str) -> list[Asked]:
    """64 lengths in a row."""
    return [
        job(operator, target, mode, "lengths", {**SMALL, "B": 1, "T": T}, chunk_size=16)
        for T in range(1000, 1064)
        for mode in MODES[operator]
    ]


def all_jobs() -> list[list[Asked]]:
    """Batches that share kernels, the long ones first."""
    batches = [
        width_jobs(operator, target, width, dtype)
        for operator in reversed(NAMES)
        for target in TARGETS
        for width, dtype in widths_and_dtypes(operator, target)
    ]
    batches += [integer_jobs(operator, target) for operator in SAMPLE for target in TARGETS]
    batches += [narrow_jobs(operator, "sm_90") for operator in SAMPLE]
    batches += [length_jobs(operator, "sm_90") for operator in SAMPLE]
    return batches


def compile_everything(folder: Path) -> list[Result]:
    batches: queue.SimpleQueue[list[Asked]] = queue.SimpleQueue()
    for batch in all_jobs():
        batches.put(batch)
    with ThreadPoolExecutor(WORKERS) as pool:
        parts = list(pool.map(lambda _: answers(batches, folder), range(WORKERS)))
    return [result for part in parts for result in part]


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> list[Result]:
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "offline"
    folder.mkdir(exist_ok=True)
    report = folder / "report.json"
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not report.exists():
            report.write_text(json.dumps(compile_everything(folder)))
    return json.loads(report.read_text())


def chosen(results: list[Result], **wanted: object) -> list[Result]:
    found = [r for r in results if all(r[n] == x for n, x in wanted.items())]
    assert found, f"nothing was compiled for {wanted}"
    return found


def label(result: Result) -> str:
    sizes = [f"{n}={result[n]}" for n in ("B", "T", "H", "K", "V", "documents")]
    return " ".join([*(result[n] for n in ("operator", "mode", "dtype", "target")), *sizes])


def failures(results: list[Result]) -> dict[str, str]:
    return {label(r): r["error"] for r in results if r["error"]}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NAMES)
def test_head_sizes_64_128_256_compile(results: list[Result], name: str, target: str) -> None:
    found = chosen(results, operator=name, target=target, topic="width")
    assert len(found) == len(widths_and_dtypes(name, target)) * len(MODES[name])
    assert failures(found) == {}
    for result in found:
        names = {kernel["name"] for kernel in result["kernels"]}
        forward = f"_{result['mode']}_forward"
        sums = set() if name in CARRYING else {"_chunk_sums", "_add_up"}
        assert {forward} | sums <= names, f"{label(result)}: launched {sorted(names)}"
        backward = names & {"_chunk_backward_value", "_chunk_backward_writes"}
        assert bool(backward) == (result["mode"] != "step"), f"{label(result)}: launched {sorted(names)}"
        for kernel in result["kernels"]:
            assert kernel["launches"] >= 1
            assert kernel["shared"] <= SHARED[target], f"{label(result)} {kernel['name']}: {kernel['shared']}"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", SAMPLE)
def test_integer_arguments_of_1_16_and_17_compile(results: list[Result], name: str, target: str) -> None:
    assert failures(chosen(results, operator=name, target=target, topic="integer")) == {}


@pytest.mark.parametrize("name", SAMPLE)
def test_narrow_heads_compile_or_are_refused(results: list[Result], name: str) -> None:
    """What is refused names the smallest size that works."""
    found = failures(chosen(results, operator=name, topic="narrow"))
    assert all(text.startswith("ValueError") and "16" in text for text in found.values()), found


@pytest.mark.parametrize(("name", "mode"), [(name, mode) for name in SAMPLE for mode in MODES[name]])
def test_64_lengths_need_at_most_4_variants(results: list[Result], name: str, mode: str) -> None:
    found = chosen(results, operator=name, mode=mode, topic="lengths")
    assert len(found) == 64 and failures(found) == {}
    hashes: dict[str, set[str]] = {}
    for result in found:
        for kernel in result["kernels"]:
            hashes.setdefault(kernel["name"], set()).add(kernel["hash"])
    assert hashes and max(map(len, hashes.values())) <= 4, {n: len(h) for n, h in hashes.items()}


@pytest.mark.parametrize("name", SAMPLE)
def test_program_ids_are_widened_before_they_are_multiplied(results: list[Result], name: str) -> None:
    """No address is a 32-bit product: a tensor may have more than 2³¹ elements."""
    narrow = {k["name"]: k["narrow"] for r in chosen(results, operator=name) for k in r["kernels"] if k["narrow"]}
    assert narrow == {}


@pytest.mark.parametrize("name", SAMPLE)
def test_float32_products_are_not_tf32(results: list[Result], name: str) -> None:
    found = chosen(results, operator=name, dtype="float32")
    assert [label(r) for r in found if any(k["tf32"] for k in r["kernels"])] == []


@pytest.mark.parametrize("name", NAMES)
def test_16_bit_products_are_on_tensor_cores(results: list[Result], name: str) -> None:
    found = [r for r in chosen(results, operator=name, topic="width") if r["dtype"] == "bfloat16"]
    kernels = [(k["name"], k["off"], label(r)) for r in found for k in r["kernels"] if k["on"] + k["off"]]
    assert kernels and [kernel for kernel in kernels if kernel[1]] == []


def test_spills_are_reported(results: list[Result], capsys: pytest.CaptureFixture[str]) -> None:
    """The registers of every kernel are known; what spills is printed, worst first."""
    rows = [
        (k["spill"], k["registers"], f"{k['name']}: {label(r)}")
        for r in chosen(results, topic="width")
        for k in r["kernels"]
    ]
    assert all(spill >= 0 and registers > 0 for spill, registers, _ in rows)
    spilling = sorted((row for row in rows if row[0]), reverse=True)
    with capsys.disabled():
        print(f"\n{len(spilling)} of {len(rows)} compiled kernels spill; bytes per thread, registers:")
        for spill, registers, text in spilling[:10]:
            print(f"  {spill:6d} {registers:4d}  {text}")
