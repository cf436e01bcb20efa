"""The hand-written operator, loaded as verification loads any module."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
import torch

from recgen.verify import Profile, load_module

HANDMADE = Path(__file__).with_name("handmade.py")


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Small tensors: threads only wait for each other."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def handmade() -> ModuleType:
    return load_module(HANDMADE)


def broken(folder: Path, old: str, new: str) -> ModuleType:
    """The hand-written module with one piece of its text replaced."""
    text = HANDMADE.read_text()
    assert text.count(old) == 1
    path = folder / "broken.py"
    path.write_text(text.replace(old, new))
    return load_module(path)


@pytest.fixture(scope="session")
def profile(handmade: ModuleType) -> Profile:
    return Profile.of(handmade)
