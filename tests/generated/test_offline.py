"""Every kernel compiles for GPUs that are not here, fits their shared memory, and addresses memory in 64 bits.

The work is done by `offline_worker` in two processes, cut into batches by target and operator; under pytest-xdist the
first test process that gets here does it, and the others read its results.
"""
from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.generated.support import OPERATORS, ROOT

pytestmark = pytest.mark.offline

TARGETS = ("sm_80", "sm_90", "sm_100", "gfx942")
WIDTHS = (64, 128, 256)
DTYPES = ("float32", "bfloat16")
MODES = ("chunk", "recurrent")
SHARED = {"sm_80": 166912, "sm_90": 232448, "sm_100": 232448, "gfx942": 65536}
USUAL = {"B": 2, "T": 100, "H": 3, "K": 64, "V": 64}
SMALL = {"B": 2, "T": 5, "H": 3, "K": 16, "V": 16}

Job = dict[str, Any]
Result = dict[str, Any]


def job(operator: str, target: str, mode: str, topic: str, *, dtype: str = "float32",
        sizes: dict[str, int] | None = None, chunk_size: int | None = None, documents: int | None = None,
        backward: bool = True) -> Job:
    return {"operator": operator, "target": target, "mode": mode, "topic": topic, "dtype": dtype, "backward": backward,
            "sizes": sizes or USUAL, "chunk_size": chunk_size, "documents": documents}


EVERYTHING = os.environ.get("RECGEN_OFFLINE") == "all"  # as `make compile` asks


def widths_and_dtypes(operator: str, target: str) -> list[tuple[int, str]]:
    """Head sizes 64, 128 and 256 in float32 and bfloat16. Without EVERYTHING each pair of target and operator takes every
    width once and both dtypes, so that every width meets every dtype on every target in some operator."""
    if EVERYTHING:
        return [(width, dtype) for width in WIDTHS for dtype in DTYPES]
    turn = TARGETS.index(target) + OPERATORS.index(operator)
    return [(width, DTYPES[(turn + k) % 2]) for k, width in enumerate(WIDTHS)]


def width_jobs(operator: str, target: str) -> list[Job]:
    """Both kernels at the chosen widths and dtypes."""
    return [job(operator, target, mode, "width", dtype=dtype, sizes={**USUAL, "K": width, "V": width})
            for width, dtype in widths_and_dtypes(operator, target) for mode in MODES]


def integer_jobs(operator: str, target: str) -> list[Job]:
    """Each count set to 1, 16 and 17 in turn: Triton makes a constant of 1, and assumes divisibility of 16."""
    sizes = [{**SMALL, axis: n} for axis in ("T", "H", "B") for n in (1, 16, 17)]
    widths = [{**SMALL, axis: n} for axis in ("K", "V") for n in (1, 17)]
    jobs = [job(operator, target, mode, "integer", sizes=s) for s in (*sizes, *widths) for mode in MODES]
    packed = [job(operator, target, mode, "integer", sizes={**SMALL, "B": 1, "T": n}, documents=n)
              for n in (1, 16, 17) for mode in MODES]
    return jobs + packed


def length_jobs(operator: str, target: str) -> list[Job]:
    """64 lengths in a row."""
    return [job(operator, target, mode, "lengths", sizes={**SMALL, "B": 1, "T": T})
            for T in range(1000, 1064) for mode in MODES]


def all_jobs() -> list[list[Job]]:
    """Batches, the long ones first."""
    batches = [width_jobs(operator, target) for target in TARGETS for operator in OPERATORS]
    batches += [[j for operator in OPERATORS for j in integer_jobs(operator, target)] for target in TARGETS]
    batches += [[j for operator in OPERATORS for j in length_jobs(operator, "sm_90")]]
    return batches


def run_batch(folder: Path, number: int, jobs: list[Job]) -> list[Result]:
    asked, answered = folder / f"jobs-{number}.json", folder / f"results-{number}.json"
    asked.write_text(json.dumps(jobs))
    env = {n: x for n, x in os.environ.items() if n != "TRITON_INTERPRET"}
    env |= {"TRITON_CACHE_DIR": str(folder / f"triton-{number}"), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, "-m", "tests.generated.offline_worker", str(asked), str(answered)],
                          cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(answered.read_text())


def compile_everything(folder: Path) -> list[Result]:
    with ThreadPoolExecutor(2) as pool:
        batches = list(pool.map(lambda batch: run_batch(folder, *batch), enumerate(all_jobs())))
    return [result for batch in batches for result in batch]


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
    sizes = [f"{n}={x}" for n, x in result["sizes"].items()] + [f"documents={result['documents']}"]
    return " ".join([*(result[n] for n in ("operator", "mode", "dtype", "target")), *sizes])


def failures(results: list[Result]) -> dict[str, str]:
    return {label(r): r["error"] for r in results if r["error"]}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", OPERATORS)
def test_head_sizes_64_128_256_compile(results: list[Result], name: str, target: str) -> None:
    found = chosen(results, operator=name, target=target, topic="width")
    assert len(found) == len(widths_and_dtypes(name, target)) * len(MODES)
    assert failures(found) == {}
    for result in found:
        assert len(result["kernels"]) >= 2, f"{label(result)}: a forward and a backward kernel"
        for kernel in result["kernels"]:
            assert kernel["launches"] >= 1
            assert kernel["shared"] <= SHARED[target], f"{label(result)} {kernel['name']}: {kernel['shared']}"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", OPERATORS)
def test_integer_arguments_of_1_16_and_17_compile(results: list[Result], name: str, target: str) -> None:
    assert failures(chosen(results, operator=name, target=target, topic="integer")) == {}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", OPERATORS)
def test_64_lengths_need_at_most_4_variants(results: list[Result], name: str, mode: str) -> None:
    found = chosen(results, operator=name, mode=mode, topic="lengths")
    assert len(found) == 64 and failures(found) == {}
    hashes: dict[str, set[str]] = {}
    for result in found:
        for kernel in result["kernels"]:
            hashes.setdefault(kernel["name"], set()).add(kernel["hash"])
    assert hashes and max(map(len, hashes.values())) <= 4, {n: len(h) for n, h in hashes.items()}


@pytest.mark.parametrize("name", OPERATORS)
def test_program_ids_are_widened_before_they_are_multiplied(results: list[Result], name: str) -> None:
    """No address is a 32-bit product: a tensor may have more than 2³¹ elements."""
    narrow = {k["name"]: k["narrow"] for r in chosen(results, operator=name) for k in r["kernels"] if k["narrow"]}
    assert narrow == {}


@pytest.mark.parametrize("name", OPERATORS)
def test_float32_products_are_not_tf32(results: list[Result], name: str) -> None:
    found = chosen(results, operator=name, dtype="float32")
    assert [label(r) for r in found if any(k["tf32"] for k in r["kernels"])] == []


def test_spills_are_reported(results: list[Result], capsys: pytest.CaptureFixture[str]) -> None:
    """The registers of every kernel are known; what spills is printed, worst first."""
    rows = [(k["spill"], k["registers"], f"{k['name']}: {label(r)}")
            for r in chosen(results, topic="width") for k in r["kernels"]]
    assert all(spill >= 0 and registers > 0 for spill, registers, _ in rows)
    spilling = sorted((row for row in rows if row[0]), reverse=True)
    with capsys.disabled():
        print(f"\n{len(spilling)} of {len(rows)} compiled kernels spill; bytes per thread, registers:")
        for spill, registers, text in spilling[:10]:
            print(f"  {spill:6d} {registers:4d}  {text}")
