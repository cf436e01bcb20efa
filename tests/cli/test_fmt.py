"""recgen fmt and recgen schema: what they write, and what they leave alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

Command = Callable[..., Result]

UNTIDY, TIDY = "scale:  'K ** -0.5'\nname: a # mine\n", "name: a  # mine\nscale: K ** -0.5\n"


def test_a_file_is_normalised_in_place(recgen_command: Command, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(UNTIDY)
    result = recgen_command("fmt", path)
    assert result.exit_code == 0 and f"{path}: normalised" in result.stdout
    assert path.read_text() == TIDY
    assert "1 in normal form" in recgen_command("fmt", path).stdout


def test_check_writes_nothing(recgen_command: Command, tmp_path: Path) -> None:
    untidy, tidy = tmp_path / "a.yaml", tmp_path / "b.yaml"
    untidy.write_text(UNTIDY)
    tidy.write_text(TIDY)
    result = recgen_command("fmt", untidy, tidy, "--check")
    assert result.exit_code == 1
    assert f"{untidy}: not in its normal form" in result.stdout and str(tidy) not in result.stdout
    assert untidy.read_text() == UNTIDY
    assert recgen_command("fmt", tidy, "--check").exit_code == 0


def test_a_family_is_normalised_too(recgen_command: Command, tmp_path: Path) -> None:
    path = tmp_path / "hyperbolic.yaml"
    path.write_text("log: -log(1 + softplus(g))\ninputs: {g: B T H}\ntype: gated\nname: hyperbolic\n")
    assert recgen_command("fmt", path).exit_code == 0
    assert path.read_text() == "name: hyperbolic\ntype: gated\ninputs: {g: B T H}\nlog: -log(1 + softplus(g))\n"


@pytest.mark.parametrize("content", [b"name: a\nscle: 2\n", b"\xff", b"", b"name: [\n", b"type: gated\n"])
def test_a_wrong_file_is_left_alone_and_the_others_are_not(
    content: bytes, recgen_command: Command, tmp_path: Path
) -> None:
    bad, good = tmp_path / "bad.yaml", tmp_path / "good.yaml"
    bad.write_bytes(content)
    good.write_text(UNTIDY)
    result = recgen_command("fmt", bad, good)
    assert result.exit_code == 2 and str(bad) in result.stderr
    assert bad.read_bytes() == content and good.read_text() == TIDY


def test_a_draft_that_means_nothing_yet_is_normalised(recgen_command: Command, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("params: {w: {init: 0, axes: H}}\nname: a\n")
    assert recgen_command("fmt", path).exit_code == 0
    assert path.read_text() == "name: a\nparams: {w: {axes: H, init: 0}}\n"
    assert "nothing depends on w" in recgen_command("check", path).stderr


def test_a_missing_file(recgen_command: Command, tmp_path: Path) -> None:
    result = recgen_command("fmt", tmp_path / "a.yaml")
    assert result.exit_code == 2 and "a.yaml" in result.stderr


@pytest.mark.parametrize("flag", [(), ("--family",)])
def test_the_schema_is_printed_or_written(flag: tuple[str, ...], recgen_command: Command, tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    printed = recgen_command("schema", *flag)
    assert recgen_command("schema", *flag, "--out", path).exit_code == printed.exit_code == 0
    assert path.read_text() == printed.stdout
    assert ("scale" in json.loads(printed.stdout)["properties"]) == (flag == ())
