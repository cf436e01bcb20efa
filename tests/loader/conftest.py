"""A stand-in for the compiler, so that what is tested here is the loading: it emits plain Python over floats."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SOURCE = '''\
"""{name}: S = {decay} S + k v, o = q S."""

NAME = {name!r}


def operator(q, k, v):
    outputs, state = [], 0.0
    for query, key, value in zip(q, k, v):
        state = {decay} * state + key * value
        outputs.append(round(query * state, 9))
    return outputs
'''


def small_compiler(spec: Any) -> str:
    """The source of a token loop in plain Python for a spec with a fixed decay that does not depend on the head."""
    import sympy

    return SOURCE.format(name=spec.name, decay=float(sympy.exp(spec.decay.log.tree)))


def forget() -> dict[str, ModuleType]:
    """Forgets the modules of all specs, as a new process would not know them, and returns them."""
    return {name: sys.modules.pop(name) for name in [*sys.modules] if name.startswith("recgen_")}


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Puts the stand-in in the compiler's place; the list holds the name of each spec that it was asked for.

    The key of a module does not tell which of the two made it, so neither sees what the other has loaded.
    """
    before = forget()
    asked: list[str] = []

    def compile_files(spec: Any, stem: str, **_: bool) -> dict[str, str]:
        asked.append(spec.name)
        return {f"{stem}.py": small_compiler(spec)}

    monkeypatch.setattr("recgen.compiler.compile_files", compile_files)
    yield asked
    forget()
    sys.modules.update(before)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of this test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("RECGEN_CACHE", str(folder))
    return folder


@pytest.fixture
def retention() -> Callable[..., dict[str, Any]]:
    """retention(0.9) is a spec, as a dict, with that decay."""

    def spec(decay: float, name: str = "retention", **more: Any) -> dict[str, Any]:
        return {"name": name, "decay": {"type": "fixed", "value": decay}, **more}

    return spec
