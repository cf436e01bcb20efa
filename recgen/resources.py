"""Where recgen's own data files are: templates, the catalogue of specs, the built-in decay families.

A checkout keeps `templates/` and `specs/` beside the package; a wheel carries them inside it. Both are found the same
way from here, and nothing else in recgen knows where they lie.
"""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def templates_dir() -> Path:
    """The folder of Jinja sources of the emitted modules."""
    return _data("templates")


def specs_dir() -> Path:
    """The folder of the catalogue: one YAML file per operator."""
    return _data("specs")


def families_dir() -> Path:
    """The folder of built-in decay families, one YAML file each."""
    return PACKAGE / "families"


def tiles_dir() -> Path:
    """The folder of the tiles that are known to fit, one JSON file for kernels that several operators may share."""
    return PACKAGE / "tiles"


def catalogue() -> dict[str, Path]:
    """Operator name → spec file, for every operator that comes with recgen, by name."""
    return {path.stem: path for path in sorted(specs_dir().glob("*.yaml"))}


def _data(name: str) -> Path:
    """The folder called `name`: inside an installed package, else beside the package in a checkout."""
    candidates = (PACKAGE / "_data" / name, PACKAGE.parent / name)
    for folder in candidates:
        if folder.is_dir():
            return folder
    looked = " and ".join(str(folder) for folder in candidates)
    raise FileNotFoundError(f"recgen's {name} are missing; looked in {looked}. Install recgen again.")
