"""What is imported is what pyproject.toml has installed, and not what happens to lie beside it."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from recgen import resources

ROOT = resources.PACKAGE.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@cache
def distributions() -> dict[str, set[str]]:
    return {
        package: {canonicalize_name(name) for name in names}
        for package, names in metadata.packages_distributions().items()
    }


def imported(folder: str) -> dict[str, Path]:
    """The installed packages that files of a folder import, each with a file."""
    found = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ImportFrom):
                names = [] if node.level else [str(node.module)]
            else:
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for package in (name.partition(".")[0] for name in names):
                if package in distributions() and package not in {"recgen"} | sys.stdlib_module_names:
                    found[package] = path
    return found


def applying(requirements: Iterable[str], extras: Iterable[str]) -> Iterator[Requirement]:
    for requirement in map(Requirement, requirements):
        if requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in (*extras, "")):
            yield requirement


def installed_with(requirements: Iterable[str]) -> set[str]:
    """The distributions that installing `requirements` installs, by their normal names."""
    found: set[str] = set()
    open_ = [(requirement, canonicalize_name(requirement.name)) for requirement in applying(requirements, ())]
    while open_:
        requirement, name = open_.pop()
        if name == "recgen":
            again = [text for extra in requirement.extras for text in PROJECT["optional-dependencies"][extra]]
        elif name in found:
            continue
        else:
            found.add(name)
            again = metadata.requires(name) or []
        open_ += [(more, canonicalize_name(more.name)) for more in applying(again, requirement.extras)]
    return found


@pytest.mark.parametrize(
    "folder, extras",
    [("recgen", ()), ("generated", ()), ("tests", ("dev",)), ("docs", ("docs",)), ("examples", ("examples",))],
)
def test_what_is_imported_is_required(folder: str, extras: tuple[str, ...]) -> None:
    required = [*PROJECT["dependencies"], *(f"recgen[{extra}]" for extra in extras)]
    installed = installed_with(required)
    unknown = {
        package: str(path.relative_to(ROOT))
        for package, path in imported(folder).items()
        if not distributions()[package] & installed
    }
    assert not unknown, f"imported, but not installed with {required}: {unknown}"


def test_a_package_that_only_lies_here_is_not_required() -> None:
    assert "torch" in installed_with(PROJECT["dependencies"])
    assert "pytest" not in installed_with(PROJECT["dependencies"])
    assert {"pytest", "sphinx", "transformers"} <= installed_with(["recgen[dev]"])
    assert "torch" in imported("generated")
