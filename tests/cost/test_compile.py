"""A compilation tells what each kernel takes and what is wrong with it, and goes on after one that fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from recgen.cost.compile import Result, compiler
from recgen.cost.jobs import Job
from recgen.cost.process import Worker
from recgen.targets import TARGETS

ROOT = Path(__file__).resolve().parents[2]
FAULTY = str(Path(__file__).with_name("faulty.py"))
SIMPLE = str(ROOT / "generated" / "simple_gla.py")


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    cache = tmp_path_factory.mktemp("triton")
    with compiler(env={"TRITON_CACHE_DIR": str(cache)}) as worker:
        yield worker


@pytest.fixture(scope="module")
def faulty(worker: Worker) -> Result:
    return worker.ask(asdict(Job(FAULTY, "chunk", "sm_90")))


def kernel(result: Result, name: str) -> dict:
    (found,) = (kernel for kernel in result["kernels"] if kernel["name"] == name)
    return found


def test_a_kernel_that_fails_does_not_hide_the_others(faulty: Result) -> None:
    names = ["_does_not_compile", "_too_large", "_off_the_tensor_cores", "_narrow", "_fine"]
    assert [kernel["name"] for kernel in faulty["kernels"]] == names
    assert [name for name in names if kernel(faulty, name)["error"]] == names[:2]
    assert faulty["error"].startswith("_does_not_compile: ")


def test_a_kernel_that_is_too_large_says_how_large(faulty: Result) -> None:
    found = kernel(faulty, "_too_large")
    assert "shared memory" in found["error"]
    assert found["shared"] > TARGETS["sm_90"].shared


def test_a_product_in_float32_is_off_the_tensor_cores(faulty: Result) -> None:
    off, fine = kernel(faulty, "_off_the_tensor_cores"), kernel(faulty, "_fine")
    assert (off["on"], off["off"], off["instructions"]) == (0, 1, {})
    assert (fine["on"], fine["off"]) == (1, 0)
    assert set(fine["instructions"]) == {"HMMA"} and fine["instructions"]["HMMA"] >= 1


def test_narrow_addresses_are_found(faulty: Result) -> None:
    assert [k["name"] for k in faulty["kernels"] if k["narrow"]] == ["_narrow"]


def test_launches_programs_and_resources_are_told(faulty: Result) -> None:
    fine = kernel(faulty, "_fine")
    assert (fine["launches"], fine["programs"], fine["warps"], fine["spill"]) == (1, 2, 4, 0)
    assert 0 < fine["registers"] <= 255


def test_code_is_saved(worker: Worker, tmp_path: Path) -> None:
    for target, endings in (("sm_90", {"ptx", "sass"}), ("gfx942", {"amdgcn"})):
        for _ in range(2):  # the second time replaces the first
            worker.ask({**asdict(Job(FAULTY, "chunk", target)), "save": str(tmp_path / target)})
        saved = [path.name for path in (tmp_path / target).glob("_fine*")]
        assert sorted(saved) == sorted(f"_fine.{ending}" for ending in endings)
    assert "HMMA" in (tmp_path / "sm_90" / "_fine.sass").read_text()
    assert ".entry _fine" in (tmp_path / "sm_90" / "_fine.ptx").read_text()
    assert "v_mfma" in (tmp_path / "gfx942" / "_fine.amdgcn").read_text()


def test_a_call_that_is_refused_is_a_result(worker: Worker) -> None:
    result = worker.ask(asdict(Job(SIMPLE, "chunk", "sm_90", chunk_size=17)))
    assert result["error"].startswith("ValueError: chunk_size") and result["kernels"] == []


@pytest.mark.parametrize(
    ("target", "dtype", "mnemonic"),
    [("sm_90", "bfloat16", "HMMA"), ("sm_90", "float32", None), ("gfx942", "float32", "v_mfma")],
)
def test_where_the_products_of_an_operator_are(worker: Worker, target: str, dtype: str, mnemonic: str | None) -> None:
    result = worker.ask(asdict(Job(SIMPLE, "chunk", target, dtype=dtype, K=16, V=16)))
    assert result["error"] is None and len(result["kernels"]) >= 3
    for found in result["kernels"]:
        assert found["on"] + found["off"] >= 4, found
        assert (found["off"] == 0) == (mnemonic is not None), found
        assert {i.replace("HGMMA", "HMMA") for i in found["instructions"]} == ({mnemonic} if mnemonic else set()), found


def test_a_process_that_dies_is_quoted() -> None:
    with (
        pytest.raises(RuntimeError, match="No module named recgen.nowhere"),
        Worker("recgen.nowhere", interpret=False) as worker,
    ):
        worker.ask({})
