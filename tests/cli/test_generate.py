"""recgen generate: writes, or with --check only compares."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from recgen.cli.common import keep_foreign
from recgen.cli.generate import MARKS
from recgen.compiler import compile_files
from recgen.resources import catalogue
from recgen.spec import read_dict

Command = Callable[..., Result]
WriteSpec = Callable[..., Path]

pytestmark = pytest.mark.usefixtures("small_compiler")

FIXED = "decay: {type: fixed, value: 0.5}"


def test_each_spec_becomes_a_file_of_its_name(recgen_command: Command, write_spec: WriteSpec, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = recgen_command("generate", write_spec("a", file="x.yaml"), write_spec("b", FIXED), "retnet", "-o", out)
    assert result.exit_code == 0
    assert sorted(path.name for path in out.iterdir()) == ["a.py", "b.py", "retnet.py"]
    assert f"b → {out / 'b.py'}" in result.stdout


def test_check_passes_on_what_was_generated(recgen_command: Command, write_spec: WriteSpec, tmp_path: Path) -> None:
    spec = write_spec("a")
    recgen_command("generate", spec, "-o", tmp_path)
    result = recgen_command("generate", spec, "-o", tmp_path, "--check")
    assert result.exit_code == 0
    assert "up to date" in result.stdout


def test_check_shows_what_differs_and_names_what_is_missing(
    recgen_command: Command, write_spec: WriteSpec, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    recgen_command("generate", write_spec("a", FIXED), "-o", out)
    before = (out / "a.py").read_bytes()
    changed, new = write_spec("a", "decay: {type: fixed, value: 0.25}"), write_spec("b")
    result = recgen_command("generate", changed, new, "-o", out, "--check")
    assert result.exit_code == 1
    assert '-LOG_DECAY = "-log(2)"' in result.stderr
    assert '+LOG_DECAY = "-log(4)"' in result.stderr or '+LOG_DECAY = "-2*log(2)"' in result.stderr
    assert f"{out / 'b.py'}: missing" in result.stderr
    assert "2 of 2 modules" in result.stderr
    assert (out / "a.py").read_bytes() == before
    assert not (out / "b.py").exists()


def test_a_long_difference_is_cut(recgen_command: Command, write_spec: WriteSpec, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("".join(f"line {number}\n" for number in range(500)))
    result = recgen_command("generate", write_spec("a"), "-o", tmp_path, "--check")
    assert result.exit_code == 1
    assert "more lines" in result.stderr
    assert len(result.stderr.splitlines()) < 60


def test_a_difference_of_line_ends_alone_is_one(recgen_command: Command, write_spec: WriteSpec, tmp_path: Path) -> None:
    spec = write_spec("a")
    recgen_command("generate", spec, "-o", tmp_path)
    file = tmp_path / "a.py"
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    result = recgen_command("generate", spec, "-o", tmp_path, "--check")
    assert result.exit_code == 1
    assert "only line ends differ" in result.stderr


def test_two_specs_of_one_name_are_refused(recgen_command: Command, write_spec: WriteSpec, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = recgen_command("generate", write_spec("a"), write_spec("a", FIXED, file="other.yaml"), "-o", out)
    assert result.exit_code == 2
    assert "2 specs are called 'a'" in result.stderr
    assert not out.exists()


def test_nothing_is_written_when_one_spec_is_bad(
    recgen_command: Command, write_spec: WriteSpec, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    result = recgen_command("generate", write_spec("a"), write_spec("b", "deccay: none"), "-o", out)
    assert result.exit_code == 2
    assert not out.exists()


def test_the_whole_catalogue_has_one_name_each(recgen_command: Command, tmp_path: Path) -> None:
    result = recgen_command("generate", *catalogue().values(), "-o", tmp_path)
    assert result.exit_code == 0
    assert {path.stem for path in tmp_path.glob("*.py")} == set(catalogue())


def test_one_refusal_does_not_keep_the_others_from_being_written(
    recgen_command: Command, write_spec: WriteSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from recgen import loader
    from recgen.errors import Location, NotLowered, Problem

    generate = loader.generate

    def refusing(spec, path: Path, **options: bool) -> Path:
        if spec.name == "a":
            raise NotLowered(Problem(Location("a.yaml", 1, 1), "", "not lowered yet"))
        return generate(spec, path, **options)

    monkeypatch.setattr(loader, "generate", refusing)
    result = recgen_command("generate", write_spec("a"), write_spec("b", FIXED), "-o", tmp_path / "out")
    assert result.exit_code == 2 and "not lowered yet" in result.stderr
    assert (tmp_path / "out" / "b.py").is_file()


@pytest.fixture
def with_companions(small_compiler: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests and types compile at once too, to a line each."""

    def compile_files(spec, stem: str, *, with_test: bool, typed: bool) -> dict[str, str]:
        beside = {f"{stem}.pyi": "TYPES\n"} if typed else {}
        beside |= {f"test_{stem}.py": "TESTS\n"} if with_test else {}
        return {f"{stem}.py": f'NAME = "{spec.name}"\n', **beside}

    monkeypatch.setattr("recgen.compiler.compile_files", compile_files)


@pytest.mark.usefixtures("with_companions")
def test_tests_and_types_are_written_beside_and_checked(
    recgen_command: Command, write_spec: WriteSpec, tmp_path: Path
) -> None:
    spec, out = write_spec("a"), tmp_path / "out"
    result = recgen_command("generate", spec, "-o", out, "--with-test", "--typed")
    assert f"a → {out / 'a.py'}, {out / 'a.pyi'}, {out / 'test_a.py'}" in result.stdout
    assert sorted(path.name for path in out.iterdir()) == ["a.py", "a.pyi", "test_a.py"]
    check = ("generate", spec, "-o", out, "--check", "--with-test", "--typed")
    assert recgen_command(*check).exit_code == 0
    (out / "test_a.py").write_text("pass\n")
    (out / "a.pyi").unlink()
    result = recgen_command(*check)
    assert result.exit_code == 1
    assert "+TESTS" in result.stderr and f"{out / 'a.pyi'}: missing" in result.stderr
    assert recgen_command("generate", spec, "-o", out, "--check").exit_code == 0


@pytest.mark.usefixtures("with_companions")
def test_a_module_and_the_tests_of_another_are_not_one_file(
    recgen_command: Command, write_spec: WriteSpec, tmp_path: Path
) -> None:
    specs = write_spec("a"), write_spec("test_a")
    assert recgen_command("generate", *specs, "-o", tmp_path / "out").exit_code == 0
    result = recgen_command("generate", *specs, "-o", tmp_path / "out", "--with-test")
    assert result.exit_code == 2 and "the tests of 'a' and the module of 'test_a'" in result.stderr


OWN = "import torch\n"


@pytest.mark.usefixtures("with_companions")
@pytest.mark.parametrize("name", ["a.py", "test_a.py", "a.pyi"])
def test_a_file_of_someone_else_is_not_overwritten(
    name: str, recgen_command: Command, write_spec: WriteSpec, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_text(OWN)
    call = ("generate", write_spec("b"), write_spec("a"), "-o", out, "--with-test", "--typed")
    result = recgen_command(*call)
    said = "".join(result.stderr.replace("│", " ").split())
    assert result.exit_code == 2
    assert f"{out / name} is there already and was not generated by recgen; --force".replace(" ", "") in said
    assert [path.name for path in out.iterdir()] == [name] and (out / name).read_text() == OWN
    assert recgen_command(*call, "--force").exit_code == 0
    assert (out / name).read_text() != OWN


def test_what_is_not_written_does_not_matter(recgen_command: Command, write_spec: WriteSpec, tmp_path: Path) -> None:
    """Nor does an empty file."""
    (tmp_path / "test_a.py").write_text(OWN)
    (tmp_path / "a.py").touch()
    assert recgen_command("generate", write_spec("a"), "-o", tmp_path).exit_code == 0
    assert (tmp_path / "a.py").read_text() and (tmp_path / "test_a.py").read_text() == OWN


def test_what_recgen_has_generated_is_known_again(tmp_path: Path) -> None:
    spec = read_dict({"name": "small", "license": "mit"})
    texts = compile_files(spec, "small", with_test=True, typed=True)
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    assert len(texts) == 3
    keep_foreign(tmp_path.iterdir(), MARKS, "was not generated by recgen", "--out")
