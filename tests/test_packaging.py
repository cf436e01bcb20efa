"""An installed recgen has all that a checkout has: the wheel carries templates, catalogue and families."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

import recgen
from recgen import resources

ROOT = resources.PACKAGE.parent


def python(*arguments: str | Path, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    python(
        *("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"),
        *("--wheel-dir", folder, ROOT),
        cwd=folder,
    )
    [path] = folder.glob("recgen-*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the wheel's contents, as site-packages would."""
    folder = tmp_path_factory.mktemp("site-packages")
    with ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_is_the_checkout(installed: Path) -> None:
    assert files(installed / "recgen" / "_data" / "templates") == files(ROOT / "templates")
    assert files(installed / "recgen" / "_data" / "specs") == files(ROOT / "specs")
    assert files(installed / "recgen" / "families") == files(ROOT / "recgen" / "families")
    assert {path.name for path in installed.iterdir()} == {"recgen", f"recgen-{recgen.__version__}.dist-info"}


def test_everything_is_found_in_a_checkout_too() -> None:
    assert resources.templates_dir() == ROOT / "templates"
    assert resources.specs_dir() == ROOT / "specs"
    assert list(resources.families_dir().glob("*.yaml"))
    assert "retnet" in resources.catalogue()


def test_the_wheel_generates_what_the_checkout_does(installed: Path, tmp_path: Path) -> None:
    where = python(
        "-c", "from recgen import resources; print(resources.templates_dir())", cwd=tmp_path, PYTHONPATH=str(installed)
    )
    assert where.strip() == str(installed / "recgen" / "_data" / "templates")
    for name, path in (("wheel", installed), ("checkout", ROOT)):
        python("-m", "recgen", "generate", "learned_decay", "-o", tmp_path / name, cwd=tmp_path, PYTHONPATH=str(path))
    assert files(tmp_path / "wheel") == files(tmp_path / "checkout") != {}


def test_missing_data_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(resources, "PACKAGE", tmp_path / "recgen")
    with pytest.raises(FileNotFoundError, match="templates are missing"):
        resources.templates_dir()
