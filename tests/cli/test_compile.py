"""recgen compile: what it asks for, what it refuses, and its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from recgen.cost.gather import Request
from recgen.cost.report import Report

Command = Callable[..., Result]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """The requests that the command makes; the answer has one fault for sm_80 and none for others."""
    requests: list[Request] = []

    def inspect(request: Request, progress: Callable[[int, int, str], None]) -> Report:
        progress(1, 2, "sm_90, fused, width 64")
        requests.append(request)
        faults = ("sm_80: _k spills 4 bytes per thread",) if "sm_80" in request.targets else ()
        return Report(request.name, request.dtype, request.targets, {64: 64}, (), (), faults)

    monkeypatch.setattr("recgen.cost.report.inspect", inspect)
    return requests


def test_what_is_asked_for(recgen_command: Command, asked: list[Request], tmp_path: Path) -> None:
    options = ("--target", "sm_90, gfx942", "--width", "64,128", "--dtype", "float16", "--schedule", "fused")
    file = tmp_path / "new" / "x.json"
    result = recgen_command("compile", "gla", *options, "--save", tmp_path / "code", "--json", file)
    assert result.exit_code == 0, result.stderr
    (request,) = asked
    assert (request.name, request.targets, request.widths) == ("gla", ("sm_90", "gfx942"), (64, 128))
    assert (request.dtype, request.schedules, request.save) == ("float16", ("fused",), tmp_path / "code")
    assert Path(request.path).is_file()
    assert json.loads(file.read_text())["ok"] is True and f"wrote {file}" in result.stdout


def test_all_targets_and_schedules_by_default(recgen_command: Command, asked: list[Request]) -> None:
    result = recgen_command("compile", "gla")
    assert result.exit_code == 1, "sm_80 has a fault"
    assert "FAULT sm_80: _k spills 4 bytes per thread" in result.stdout
    assert asked[0].targets == ("sm_80", "sm_90", "sm_100", "gfx942")
    assert (asked[0].widths, asked[0].dtype, asked[0].schedules) == ((64,), "bfloat16", ())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("gla", "--target", "sm90"), "there is no target 'sm90'; did you mean sm_90?"),
        (("gla", "--target", "sm_90,tpu"), "the targets are sm_80, sm_90, sm_100 and gfx942"),
        (("gla", "--target", ""), "there is no target ''"),
        (("gla", "--width", "64,wide"), "'wide' is not a width; for gla it is a whole number from 1 to 256"),
        (("gla", "--width", "0"), "'0' is not a width"),
        (("gla", "--width", "-64"), "'-64' is not a width"),
        (("gla", "--width", "512"), "'512' is not a width"),
        (("hgrn", "--width", "5000"), "for hgrn it is a whole number from 1 to 4096"),
        (("gla", "--schedule", "fast"), "gla has no schedule 'fast'; it has"),
        (("gla", "--dtype", "int8"), "int8"),
        (("glaa",), "did you mean gla?"),
    ],
)
def test_bad_input(arguments: tuple[str, ...], said: str, recgen_command: Command, asked: list[Request]) -> None:
    result = recgen_command("compile", *arguments)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.replace("│", " ").split())
    assert asked == [] and result.stdout == ""


def test_without_triton(recgen_command: Command, asked: list[Request], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = recgen_command("compile", "gla", "--target", "sm_90")
    assert result.exit_code == 2 and "Triton, which is not installed" in result.stderr and asked == []


def test_from_end_to_end(tmp_path: Path) -> None:
    """The kernels of one operator, compiled and counted by the processes that the command starts."""
    options = ["--target", "sm_90", "--width", "16", "--save", tmp_path / "code", "--json", tmp_path / "x.json"]
    command = [sys.executable, "-m", "recgen", "compile", "simple_gla", *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=170)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "x.json").read_text())
    rows = {row["kernel"]["name"]: row for row in found["rows"] if row["form"] != "split"}
    assert {"_chunk_forward", "_recurrent_forward"} <= set(rows)
    assert rows["_chunk_forward"]["bytes_per_token"] == 2 * (4 * 16 + 1)
    for name, row in rows.items():
        assert row["same_programs"], name
        assert row["seconds"] > 0 and row["kernel"]["registers"] > 0 and row["kernel"]["off"] == 0
        assert name in done.stdout
        assert list((tmp_path / "code" / "sm_90").glob(f"*/{name}.sass")), name
    assert rows["_chunk_forward"]["kernel"]["instructions"]["HMMA"] > 0
    assert all(total["seconds"] > total["floor"] > 0 for total in found["totals"])
