"""What a generated module holds, and what recgen exports: the docstrings, by way of Sphinx's autodoc."""

from __future__ import annotations

import importlib
from collections.abc import Iterable

import recgen

MODULE = "generated.mamba2"
CONSTANTS = ("INPUTS", "PARAMS", "STATE", "MODES", "SCHEDULES", "CHUNK_SIZES")
FUNCTIONS = ("operator", "naive", "parallel", "chunk", "recurrent", "step", "sample_inputs")
CLASSES = ("Operator", "State")


def constants() -> str:
    """The values of the small constants of one module."""
    module = importlib.import_module(MODULE)
    return "\n".join(["```text", *(f"{name} = {getattr(module, name)}" for name in CONSTANTS), "```"])


def functions() -> str:
    """Signatures and docstrings of one module."""
    return _rst(
        *(f".. autofunction:: {MODULE}.{name}" for name in FUNCTIONS),
        *(f".. autoclass:: {MODULE}.{name}\n   :show-inheritance:" for name in CLASSES),
    )


def python() -> str:
    """Everything in `recgen.__all__`, with its docstring."""
    return _rst(*(f".. {_directive(getattr(recgen, name))}:: recgen.{name}" for name in _public()))


def _public() -> Iterable[str]:
    return (name for name in recgen.__all__ if not name.startswith("_"))


def _directive(value: object) -> str:
    if isinstance(value, type):
        return "autoexception" if issubclass(value, BaseException) else "autoclass"
    return "autofunction"


def _rst(*blocks: str) -> str:
    return "\n".join(["```{eval-rst}", "\n\n".join(blocks), "```"])
