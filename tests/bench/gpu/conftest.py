"""Folders of generated modules, right ones and wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

GENERATED = Path(__file__).resolve().parents[3] / "generated"

CHANGED = """

_right_chunk = chunk


def chunk(*args, **options):
    o, state = _right_chunk(*args, **options)
    {change}
    return o, state
"""


@pytest.fixture(scope="session")
def changed() -> Callable[..., None]:
    """changed(folder, name, change) writes simple_gla as `name`, with a line that changes what its chunk form gives."""

    def write(folder: Path, name: str, change: str = "") -> None:
        text = (GENERATED / "simple_gla.py").read_text(encoding="utf-8")
        (folder / f"{name}.py").write_text(text + CHANGED.format(change=change or "pass"), encoding="utf-8")

    return write
