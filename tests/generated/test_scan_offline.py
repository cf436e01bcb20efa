"""The scan kernels compile for GPUs that are not here, address memory in 64 bits, and offer many programs at once.

Compiling needs a process that has never seen Triton's interpreter: this file run as a module is that process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from recgen.verify.offline import TARGETS, offline
from tests.generated.catalogue import ROOT, emitted
from tests.generated.ir import narrow_products

OPERATORS = ("full_gate", "mamba", "hgrn", "rg_lru", "rwkv4")
MATRIX = ({"H": 3, "K": 64, "V": 64}, {"H": 1, "K": 1, "V": 17}, {"H": 2, "K": 256, "V": 40})
VECTOR = ({"D": 64}, {"D": 1}, {"D": 1000})
LONG = {"B": 1, "T": 32768, "D": 1024}


def launched(name: str, target: str, sizes: dict[str, int], dtype: torch.dtype) -> list[dict[str, Any]]:
    """What forward and backward of both kernel forms launch."""
    module = emitted(name)
    values = {n: x.requires_grad_() for n, x in module.sample_inputs(**sizes, dtype=dtype).items()}
    with offline(target) as compiled:
        for mode in ("chunk", "recurrent"):
            o, final = module.operator(**values, output_final_state=True, mode=mode, backend="triton")
            results = [x for x in (o, *final) if x.requires_grad]  # a maximum has no gradient
            torch.autograd.backward(results, [torch.zeros_like(x) for x in results])
    return [{"name": k.name, "grid": k.grid[0], "shared": k.shared, "spill": k.spill,
             "narrow": bool(k.files) and narrow_products(k.text("ttir"))} for k in compiled.kernels.values()]


def main() -> None:
    found: dict[str, Any] = {}
    for n, name in enumerate(OPERATORS):
        for m, target in enumerate(TARGETS):
            choices = VECTOR if "D" in emitted(name).STATE["S"] else MATRIX
            for k, sizes in enumerate(choices):
                dtype = (torch.float32, torch.bfloat16)[(n + m + k) % 2]
                found[f"{name} {target} {k}"] = launched(name, target, {"B": 2, "T": 100, **sizes}, dtype)
    found["long"] = launched("hgrn", "sm_90", LONG, torch.bfloat16)
    print(json.dumps(found))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    env = {n: x for n, x in os.environ.items() if n != "TRITON_INTERPRET"}
    env |= {"TRITON_CACHE_DIR": str(tmp_path_factory.mktemp("triton")), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, "-m", f"tests.generated.{Path(__file__).stem}"], cwd=ROOT, env=env,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


@pytest.mark.offline
@pytest.mark.parametrize("name", OPERATORS)
def test_scans_compile_for_every_target(results: dict[str, Any], name: str) -> None:
    kernels = {"_scan_ends", "_hand_over", "_scan_forward", "_scan_ends_backward", "_scan_backward",
               "_recurrent_forward"}
    for target in TARGETS:
        for k in range(3):
            found = results[f"{name} {target} {k}"]
            assert {x["name"] for x in found} == kernels
            assert all(x["shared"] <= TARGETS[target].shared and not x["narrow"] for x in found)


@pytest.mark.offline
def test_a_long_vector_scan_offers_at_least_128_programs(results: dict[str, Any]) -> None:
    chunked = [x for x in results["long"] if x["name"] != "_recurrent_forward"]
    assert {x["name"]: x["grid"] for x in chunked if x["grid"] < 128} == {}


if __name__ == "__main__":
    main()
