"""Real operators through the loader: always the right numbers, whatever else carries their name."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

import recgen

Retention = Callable[..., dict[str, Any]]
WANTED = {0.9: [1.0, 1.9, 2.71], 0.5: [1.0, 1.5, 1.75]}
FORMS = ("operator", "naive", "parallel", "chunk", "recurrent")

RUN = """
import sys, torch, recgen
decay, form = float(sys.argv[1]), sys.argv[2]
module = recgen.load({"name": "retention", "decay": {"type": "fixed", "value": decay}})
ones = torch.ones(1, 3, 1, 1)
print([round(x, 6) for x in module.operator(ones, ones, ones, mode=form)[0].flatten().tolist()])
"""


def numbers(module: ModuleType, form: str = "operator") -> list[float]:
    """The outputs of three tokens with q = k = v = 1."""
    ones = torch.ones(1, 3, 1, 1, dtype=torch.float64)
    o, _ = getattr(module, form)(ones, ones, ones)
    return [round(x, 12) for x in o.flatten().tolist()]


@pytest.fixture(scope="module")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared_cache")


@pytest.fixture(autouse=True)
def cache(shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One cache for the tests of this file, so that a spec is compiled once."""
    monkeypatch.setenv("RECGEN_CACHE", str(shared_cache))
    return shared_cache


@pytest.fixture
def process() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """process(code, *arguments) starts Python; what still runs at the end is ended."""
    started: list[subprocess.Popen[str]] = []

    def start(code: str, *arguments: object, **environment: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", code, *map(str, arguments)]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        inherited = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
        started.append(subprocess.Popen(command, env=inherited | environment, **pipes))
        return started[-1]

    yield start
    for running in started:
        running.kill()
        running.communicate()


def answer(running: subprocess.Popen[str]) -> str:
    out, err = running.communicate(timeout=240)
    assert running.returncode == 0, err
    return out


@pytest.mark.parametrize("form", FORMS)
def test_two_specs_of_one_name_keep_their_numbers(form: str, retention: Retention) -> None:
    modules = {decay: recgen.load(retention(decay)) for decay in WANTED}
    for decay, module in modules.items():
        assert numbers(module, form) == WANTED[decay]


def test_a_name_generated_again_with_another_decay(tmp_path: Path, retention: Retention) -> None:
    earlier = []
    for decay in (0.9, 0.5, 0.9):
        module = recgen.load_file(recgen.generate(retention(decay), tmp_path))
        earlier.append((module, decay))
        for loaded, its_decay in earlier:
            assert numbers(loaded) == WANTED[its_decay]


def test_a_kernel_is_compiled_from_the_source_it_was_loaded_with(
    tmp_path: Path, process: Callable[..., subprocess.Popen[str]]
) -> None:
    """Triton's interpreter reads a kernel's source at its first launch; by then the file may say something else."""
    code = """
import sys, torch, recgen
modules = {}
for decay in (0.9, 0.5):
    spec = {"name": "retention", "decay": {"type": "fixed", "value": decay}}
    modules[decay] = recgen.load_file(recgen.generate(spec, sys.argv[1]))
ones = torch.ones(1, 3, 1, 16)
for decay, module in modules.items():
    print([round(x / 16, 6) for x in module.chunk(ones, ones, ones, backend="triton")[0][..., 0].flatten().tolist()])
"""
    out = answer(process(code, tmp_path, TRITON_INTERPRET="1"))
    assert out == "[1.0, 1.9, 2.71]\n[1.0, 1.5, 1.75]\n"


def test_two_processes_compile_at_once(tmp_path: Path, process: Callable[..., subprocess.Popen[str]]) -> None:
    empty = str(tmp_path / "empty")
    running = {
        (decay, form): process(RUN, decay, form, RECGEN_CACHE=empty)
        for decay, form in ((0.9, "chunk"), (0.9, "recurrent"), (0.5, "chunk"))
    }
    for (decay, _), one in running.items():
        assert answer(one) == f"{WANTED[decay]}\n"
    assert len(list((tmp_path / "empty").iterdir())) == 2


def test_a_module_on_a_read_only_path(tmp_path: Path, retention: Retention, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read-only by its mode, and for root, whom no mode stops, by a file where bytecode would go."""
    folder = tmp_path / "read_only"
    path = recgen.generate(retention(0.9, "read_only_retention"), folder)
    (folder / "__pycache__").touch()
    for entry in (path, folder):
        entry.chmod(entry.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    try:
        assert numbers(recgen.load_file(path), "chunk") == WANTED[0.9]
        monkeypatch.syspath_prepend(folder)
        import read_only_retention  # type: ignore[import-not-found]

        assert numbers(read_only_retention) == WANTED[0.9]
    finally:
        folder.chmod(0o755)


def test_a_cache_that_cannot_be_written(tmp_path: Path, process: Callable[..., subprocess.Popen[str]]) -> None:
    (tmp_path / "file").touch()
    assert answer(process(RUN, 0.5, "chunk", RECGEN_CACHE=str(tmp_path / "file" / "cache"))) == f"{WANTED[0.5]}\n"


@pytest.mark.parametrize("triton", [True, False])
def test_a_generated_module_needs_neither_a_gpu_nor_triton_nor_recgen(
    triton: bool, tmp_path: Path, retention: Retention, process: Callable[..., subprocess.Popen[str]]
) -> None:
    recgen.generate(retention(0.9), tmp_path / "alone.py")
    code = """
import sys
sys.path.insert(0, sys.argv[1])
if sys.argv[2] == "False":
    sys.modules["triton"] = None
sys.modules["recgen"] = None
import torch
import alone
q, k, v = (torch.ones(1, 3, 1, 1).requires_grad_() for _ in "qkv")
for form in (alone.operator, alone.naive, alone.parallel, alone.chunk, alone.recurrent):
    o, _ = form(q, k, v)
    o.sum().backward()
    print([round(x, 6) for x in o.flatten().tolist()], round(float(v.grad.sum()), 6), torch.cuda.is_initialized())
    v.grad = None
"""
    out = answer(process(code, tmp_path, triton, CUDA_VISIBLE_DEVICES=""))
    assert out == "[1.0, 1.9, 2.71] 5.61 False\n" * 5


def test_importing_recgen_makes_no_cuda_context(process: Callable[..., subprocess.Popen[str]]) -> None:
    code = "import torch, recgen; recgen.load; recgen.read; print(torch.cuda.is_initialized())"
    assert answer(process(code)) == "False\n"
