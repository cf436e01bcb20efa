"""The operators under test, by name, and what their modules say of themselves.

Every operator of the catalogue is compared with its published equation, and in every form with `naive` (test_naive,
test_every_operator). The many other tests take one operator of each structure: a fault sits in a structure, not in an
operator's name. A new structure is one more entry of REPRESENTATIVES.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from recgen.resources import catalogue
from recgen.verify import Profile

ROOT = Path(__file__).resolve().parents[2]
OPERATORS = tuple(catalogue())
STRUCTURES = {
    "normalizer": "linear_attention",
    "head": "simple_gla",
    "key": "gla",
    "value": "gla_value",
    "separable": "gla_outer",
    "exclusive, learned": "rwkv5",
    "selective": "mamba2",
    "running maximum": "mlstm",
    "complex": "s4d",
}
REPRESENTATIVES = tuple(name for name in STRUCTURES.values() if name in OPERATORS)
DECAYED = ("learned_decay", "simple_gla", "gla", "gla_value", "gla_outer", "rwkv6", "mamba2")
"""Operators whose decay is the caller's to choose: by a parameter, by a gate along each axis, by a step size."""
GATES = ("simple_gla", "gla", "gla_value", "gla_outer")
"""Those of DECAYED that have plain q, k, v, and per token a gate that does nothing but decay."""


@dataclass(frozen=True)
class Form:
    """One form on one backend, in a schedule of its kernels."""

    name: str
    backend: str
    schedule: str = "auto"

    def __str__(self) -> str:
        return f"{self.name}-{self.backend}" + (f"-{self.schedule}" if self.schedule != "auto" else "")

    @property
    def interpreted(self) -> bool:
        return self.backend == "triton"


PARALLEL, CHUNK, RECURRENT = (Form(name, "torch") for name in ("parallel", "chunk", "recurrent"))
CHUNK_TRITON, RECURRENT_TRITON = (Form(name, "triton") for name in ("chunk", "recurrent"))
CHUNK_SPLIT = Form("chunk", "triton", "split")
TORCH_FORMS = (PARALLEL, CHUNK, RECURRENT)
TRITON_FORMS = (CHUNK_TRITON, RECURRENT_TRITON)
FORMS = (*TORCH_FORMS, *TRITON_FORMS)
NAIVE = Form("naive", "torch")


def load_file(path: Path, name: str | None = None) -> ModuleType:
    """Import one file by its path."""
    spec = importlib.util.spec_from_file_location(name or f"generated_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # as an import has it: torch.compile and pickle look it up there
    spec.loader.exec_module(module)
    return module


@functools.cache
def emitted(name: str) -> ModuleType:
    """The committed module of one operator of the catalogue. Its segments of time are short, as sequences are here."""
    module = load_file(ROOT / "generated" / f"{name}.py")
    if hasattr(module, "SEGMENT"):
        module.SEGMENT = 16
    return module


@functools.cache
def profile(module: ModuleType) -> Profile:
    """What the module says of itself, and what drives its decay."""
    return Profile.of(module)


def axes(module: ModuleType) -> dict[str, tuple[str, ...]]:
    """Inputs, then parameters, in call order: name → axis letters."""
    return {name: tuple(text.split()) for name, text in {**module.INPUTS, **module.PARAMS}.items()}


CARRYING = tuple(name for name in OPERATORS if emitted(name).STATE)
"""Operators that carry a state along time: all but those that read over all positions."""


def forms_of(name: str, forms: Iterable[Form] = FORMS) -> list[Form]:
    """Those of `forms` that the operator has."""
    module = emitted(name)
    return [form for form in forms if hasattr(module, form.name) and form.schedule in ("auto", *module.SCHEDULES)]


def each_form(forms: Iterable[Form] = FORMS) -> list[object]:
    """Pytest parameters, with the Triton ones marked."""
    return [pytest.param(form, id=str(form), marks=_marks(form)) for form in forms]


def over(names: Iterable[str], forms: Iterable[Form] = FORMS) -> pytest.MarkDecorator:
    """Parametrises a test by `name` and `form`: each operator in each form that it has."""
    forms = tuple(forms)
    return pytest.mark.parametrize(
        ("name", "form"),
        [
            pytest.param(name, form, id=f"{name}-{form}", marks=_marks(form))
            for name in names
            for form in forms_of(name, forms)
        ],
    )


def _marks(*forms: Form) -> list[pytest.MarkDecorator]:
    return [pytest.mark.interpreter] if any(form.interpreted for form in forms) else []
