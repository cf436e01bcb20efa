"""An installed recgen is all that a checkout is: wheel and sdist are built and installed, and every command runs.

The environment is empty but for the wheel; what recgen depends on is found where these tests find it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest

import recgen
from recgen import resources

ROOT = resources.PACKAGE.parent

HELP_OF_EVERY_COMMAND = """
from typer.testing import CliRunner
from recgen.cli.app import COMMANDS, app
for command in COMMANDS:
    result = CliRunner().invoke(app, [command.NAME, "--help"], catch_exceptions=False)
    assert result.exit_code == 0 and command.EXAMPLE in result.stdout, result.stdout
    print(command.NAME)
"""


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [*map(str, command)],
        cwd=cwd,
        env={**inherited, "COLUMNS": "120", **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def built(source: Path, target: str, folder: Path) -> Path:
    """The one file that the pinned build backend makes of `source`, without a network."""
    run(sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", folder, cwd=source)
    [path] = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in the sdist, unpacked."""
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(built(ROOT, "sdist", folder)) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    return folder / "unpacked" / f"recgen-{recgen.__version__}"


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site-packages of an environment that pip has installed the wheel into, and nothing else."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    [site] = folder.glob("lib/python*/site-packages")
    options = ("--quiet", "--disable-pip-version-check", "--no-index", "--no-deps")
    run(sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", *options, wheel, cwd=folder)
    found = [path for path in sys.path if Path(path).name == "site-packages"]
    (site / "dependencies.pth").write_text("\n".join(found), encoding="utf-8")  # after its own site-packages
    return site


@pytest.fixture(scope="module")
def programs(installed: Path) -> Path:
    return installed.parents[2] / "bin"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("cache"))


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_is_the_checkout(wheel: Path, tmp_path: Path) -> None:
    with ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    package = files(tmp_path / "recgen")
    wanted = files(ROOT / "recgen")
    for folder in ("templates", "specs"):
        wanted |= {f"_data/{folder}/{name}": text for name, text in files(ROOT / folder).items()}
    assert package == wanted
    assert {Path(name).suffix for name in package} == {".py", ".j2", ".yaml", ".json", ".css"}
    assert {path.name for path in tmp_path.iterdir()} == {"recgen", f"recgen-{recgen.__version__}.dist-info"}
    assert not list(tmp_path.rglob("__pycache__"))


def test_the_sdist_holds_what_the_suite_needs_and_no_leftovers(sdist: Path) -> None:
    made = {".gitignore", "PKG-INFO", "pyproject.toml"}
    folders = {"recgen", "templates", "specs", "generated", "tests", "docs", "examples"}
    assert {path.name for path in sdist.iterdir()} == made | folders | {"Makefile", "README.md", "constraints.txt"}
    for folder in folders:
        assert files(sdist / folder) == files(ROOT / folder), folder
    left = {"__pycache__", ".venv", ".hypothesis", ".pytest_cache", ".ruff_cache", ".mypy_cache"}
    assert not [path for path in sdist.rglob("*") if path.name in left or path.suffix == ".pyc"]


def test_the_sdist_builds_the_same_wheel(sdist: Path, wheel: Path, tmp_path: Path) -> None:
    source = shutil.copytree(sdist, tmp_path / "source")
    assert built(source, "wheel", tmp_path / "wheel").read_bytes() == wheel.read_bytes()


def test_everything_is_found_in_a_checkout_too() -> None:
    assert resources.templates_dir() == ROOT / "templates"
    assert resources.specs_dir() == ROOT / "specs"
    assert list(resources.families_dir().glob("*.yaml"))
    assert "retnet" in resources.catalogue()


def test_the_installed_package_is_the_one_that_runs(installed: Path, programs: Path, tmp_path: Path) -> None:
    program = "import recgen; from recgen import resources; print(recgen.__file__); print(resources.templates_dir())"
    where = run(programs / "python", "-c", program, cwd=tmp_path).split()
    assert where == [str(installed / "recgen" / "__init__.py"), str(installed / "recgen" / "_data" / "templates")]


def test_every_command_has_its_help(programs: Path, tmp_path: Path) -> None:
    said = run(programs / "python", "-c", HELP_OF_EVERY_COMMAND, cwd=tmp_path).split()
    listed = run(programs / "recgen", "--help", cwd=tmp_path)
    assert len(said) >= 14
    assert all(f"│ {name} " in listed for name in said)


def test_a_spec_goes_all_the_way(programs: Path, cache: str, tmp_path: Path) -> None:
    def command(*arguments: str) -> str:
        return run(programs / "recgen", *arguments, cwd=tmp_path, RECGEN_CACHE=cache, OMP_NUM_THREADS="1")

    command("new", "mine", "--family", "scalar_gate")
    assert (tmp_path / "mine.yaml").is_file() and (tmp_path / "recgen.schema.json").is_file()
    command("fmt", "mine.yaml")
    assert "gated decay per head" in command("check", "mine.yaml")
    command("explain", "mine.yaml", "--html", "mine.html")
    assert "<math" in (tmp_path / "mine.html").read_text(encoding="utf-8")
    assert "scalar_gate" in command("families")
    assert '"$schema"' in command("schema")
    command("generate", "mine.yaml", "-o", "model", "--with-test", "--typed")
    assert {path.name for path in (tmp_path / "model").iterdir()} == {"mine.py", "mine.pyi", "test_mine.py"}
    assert "mine: verified" in command("verify", "mine.yaml", "--form", "step", "--examples", "1")
    assert "templates" in command("doctor")


def test_the_wheel_generates_what_is_committed(programs: Path, cache: str, tmp_path: Path) -> None:
    run(programs / "recgen", "generate", "learned_decay", "-o", tmp_path, cwd=tmp_path, RECGEN_CACHE=cache)
    assert (tmp_path / "learned_decay.py").read_bytes() == (ROOT / "generated" / "learned_decay.py").read_bytes()


def test_missing_data_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(resources, "PACKAGE", tmp_path / "recgen")
    with pytest.raises(FileNotFoundError, match="templates are missing"):
        resources.templates_dir()
