"""What goes wrong is said without a traceback, and with exit code 2."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from recgen.errors import ProofError

Command = Callable[..., Result]
WriteSpec = Callable[..., Path]


def test_a_bad_spec_is_located(recgen_command: Command, write_spec: WriteSpec) -> None:
    path = write_spec("a", "deccay: {type: none}")
    result = recgen_command("check", path)
    assert result.exit_code == 2
    assert f"{path}:2:1" in result.stderr
    assert "^" in result.stderr
    assert "Traceback" not in result.stderr


def test_errors_of_several_specs_come_at_once(recgen_command: Command, write_spec: WriteSpec) -> None:
    paths = [write_spec(name, "deccay: {type: none}") for name in ("a", "b")]
    result = recgen_command("check", *paths)
    assert result.exit_code == 2
    for path in paths:
        assert f"{path}:2:1" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("check", "retnett"), "did you mean retnet?"),
        (("check", "nowhere.yaml"), "nowhere.yaml"),
        (("check", "."), "folder"),
        (("check",), "Missing argument"),
        (("chek", "retnet"), "No such command 'chek'. Did you mean 'check'?"),
        (("frobnicate",), "No such command 'frobnicate'.  "),
        (("generate", "retnet"), "--out"),
        (("explain", "retnet", "--stage", "emit"), "emit"),
        (("verify", "retnet", "--examples", "0"), "examples"),
        (("verify", "retnet", "--exampels", "3"), "exampels"),
    ],
)
def test_bad_usage(arguments: tuple[str, ...], said: str, recgen_command: Command) -> None:
    result = recgen_command(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stdout == ""


def test_a_folder_that_cannot_be_written(
    recgen_command: Command, small_compiler: None, write_spec: WriteSpec, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    result = recgen_command("generate", write_spec("a"), "-o", tmp_path / "file" / "out")
    assert result.exit_code == 2
    assert str(tmp_path / "file") in result.stderr


def test_a_failed_proof_is_a_failed_check(
    recgen_command: Command, write_spec: WriteSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuted(*_: object, **options: bool) -> dict[str, str]:
        raise ProofError("dS differs at T=3, cut 1+2")

    monkeypatch.setattr("recgen.compiler.compile_files", refuted)
    result = recgen_command("generate", write_spec("a"), "-o", tmp_path)
    assert result.exit_code == 1
    assert "dS differs at T=3, cut 1+2" in result.stderr
    assert not (tmp_path / "a.py").exists()


def test_a_mistake_of_recgen_itself_is_not_hidden(
    recgen_command: Command, write_spec: WriteSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **options: bool) -> dict[str, str]:
        raise KeyError("a bug")

    monkeypatch.setattr("recgen.compiler.compile_files", broken)
    with pytest.raises(KeyError, match="a bug"):
        recgen_command("generate", write_spec("a"), "-o", tmp_path)
