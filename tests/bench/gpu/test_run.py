"""The whole run without a GPU: the same steps, with everything in its files that a run on one would put there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from recgen.bench.gpu.plan import DRY
from recgen.cli import app

from .conftest import GENERATED

TIMES = ("median", "low", "high", "rounds")


def gpu(*arguments: Any) -> Result:
    return CliRunner().invoke(app, ["gpu", *map(str, arguments)], catch_exceptions=False)


@pytest.fixture(scope="module")
def dry(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, dict[str, Any], str]:
    folder = tmp_path_factory.mktemp("dry")
    result = gpu("simple_gla", "hgrn", "--dry-run", "--modules", GENERATED, "--out", folder)
    return result, json.loads((folder / "gpu.json").read_text()), (folder / "gpu.md").read_text()


def test_it_checks_every_form_with_a_kernel_in_both_dtypes(dry: tuple[Result, dict[str, Any], str]) -> None:
    result, written, _ = dry
    assert result.exit_code == 0, result.output
    assert written["ok"] and not written["failures"] and not written["left_out"] and not written["unchecked"]
    for name, schedule in (("simple_gla", "fused"), ("hgrn", "scan")):
        own = [check for check in written["checks"] if check["operator"] == name]
        forms = {(c["case"]["form"], c["case"].get("schedule", "auto"), c["case"].get("dtype", "float32")) for c in own}
        assert {(form, dtype) for form, _, dtype in forms} == {
            (form, dtype) for form in ("chunk", "recurrent") for dtype in ("float32", "bfloat16")
        }
        assert (("chunk", schedule, "float32") in forms) and all(c["case"]["backend"] == "triton" for c in own)
        names = {m["name"] for c in own for m in c["measures"]}
        assert {"output", "gradient g", "gradient initial 0"} <= names
        assert any(name.startswith("state ") for name in names)
        assert any(c["case"].get("documents") for c in own)
        assert all(m["error"] <= m["allowed"] for c in own for m in c["measures"])


def test_every_comparison_is_there_and_nothing_is_timed(dry: tuple[Result, dict[str, Any], str]) -> None:
    _, written, _ = dry
    assert [(t["operator"], t["at"]) for t in written["timings"]] == [("simple_gla", str(s)) for s in DRY.shapes]
    assert [d["operator"] for d in written["decode"]] == ["simple_gla"] * len(DRY.decode_batches)
    for timing in written["timings"]:
        assert set(timing["forward"]) == set(timing["both"]) == {"auto", "fused", "split", "softmax", "copy"}
        assert set(timing["peak_bytes"].values()) == {None}
        assert timing["difference"] is None
    for decoded in written["decode"]:
        assert set(decoded["times"]) == {"step", "recurrent"}
    found = list(figures(written))
    assert len(found) == 2 * (5 * 2) + 2 * 2
    assert all(figure == dict.fromkeys(TIMES) for figure in found)
    assert written["took_s"] is None and written["machine"]["device"] is None


def figures(value: Any) -> Iterator[dict[str, Any]]:
    """Every figure, however deep."""
    if isinstance(value, dict):
        if set(value) == set(TIMES):
            yield value
        else:
            yield from (found for inner in value.values() for found in figures(inner))
    elif isinstance(value, list):
        yield from (found for inner in value for found in figures(inner))


def test_the_table_holds_the_checks_and_the_contenders(dry: tuple[Result, dict[str, Any], str]) -> None:
    result, written, text = dry
    assert "a dry run, which measures nothing" in text
    assert f"| `simple_gla` | {sum(c['operator'] == 'simple_gla' for c in written['checks'])} | 0 |" in text
    for contender in ("auto", "softmax", "copy"):
        assert f"| `simple_gla` | {contender} | – | – |" in text
    assert "fla is left out" in text
    assert " ms" not in text and "MiB" not in text
    assert "0 failed" in result.output and "a dry run measures nothing" in result.output


def test_wrong_numbers_nan_and_a_crash_fail_and_the_rest_goes_on(tmp_path: Path, changed: Callable[..., None]) -> None:
    """Wrong in float32, nothing but NaN in bfloat16."""
    modules = tmp_path / "modules"
    modules.mkdir()
    changed(modules, "wrong", "o = o * (1.03 if o.dtype is torch.float32 else float('nan'))")
    changed(modules, "dying", "import os; o.dtype is torch.float32 and o.shape[1] == 1 and os._exit(7)")
    result = gpu("--dry-run", "--modules", modules, "--out", tmp_path)
    assert result.exit_code == 1, result.output
    written = json.loads((tmp_path / "gpu.json").read_text())
    checks = {name: [c for c in written["checks"] if c["operator"] == name] for name in written["operators"]}
    assert not written["ok"]
    assert {c["case"]["form"] for c in checks["wrong"] if not c["ok"]} == {"chunk"}
    assert all(c["ok"] == (c["case"]["form"] != "chunk") for c in checks["wrong"])
    assert "output: relative error 3.00e-02" in str(checks["wrong"][0]["reasons"])
    assert any(m["error"] is None and not m["ok"] for c in checks["wrong"] for m in c["measures"])
    crashed = [c for c in checks["dying"] if "crash" in c]
    assert [c["at"] for c in crashed] == [f"chunk/{s} float32 T=1" for s in ("fused", "split")]
    assert all("the process ended with 7" in c["crash"] for c in crashed)
    assert len(checks["dying"]) == len(checks["wrong"]), "the others were made all the same"
    assert all(c["ok"] for c in checks["dying"] if "crash" not in c)
    assert {line.split(":")[0] for line in written["failures"]} == {
        f"core checks of {name}" for name in ("wrong", "dying")
    }
    assert "| `wrong` |" in (tmp_path / "gpu.md").read_text()


def test_what_there_is_no_time_for_is_named_and_nothing_checked_is_not_right(tmp_path: Path) -> None:
    result = gpu("simple_gla", "--dry-run", "--modules", GENERATED, "--out", tmp_path, "--budget", 1)
    assert result.exit_code == 1
    written = json.loads((tmp_path / "gpu.json").read_text())
    assert written["checks"] == written["timings"] == [] and written["unchecked"] == ["simple_gla"]
    assert {
        "core checks of simple_gla",
        "wide checks of simple_gla",
        f"timing simple_gla at {DRY.shapes[0]}",
        "timing one token of simple_gla",
    } <= set(written["left_out"])
    assert "left out for lack of time" in result.output
    assert "simple_gla: not one check was made" in (tmp_path / "gpu.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "torch sees no GPU here: run this on a machine with one, or try the steps with --dry-run"),
        (["--dry-run", "retnett"], "retnett: there is no such operator in the catalogue; did you mean retnet?"),
        (["--dry-run", "--modules", "nowhere"], "nowhere: no such folder of generated modules"),
        (["--dry-run", "--modules", "."], "there is no generated module here"),
    ],
)
def test_what_cannot_be_run_is_refused(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = gpu(*arguments, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert said in result.output
    assert not (tmp_path / "out").exists()
