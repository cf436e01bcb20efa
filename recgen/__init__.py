"""recgen compiles a recurrence, written as a short YAML spec, into one importable Python module.

    import recgen
    gla = recgen.load("gla")                 # a catalogue operator, or the path of a spec of your own
    o, state = gla.operator(**gla.sample_inputs())
    recgen.generate("gla", "my_model/gla.py")

Importing recgen is cheap: what a name needs (sympy to compile, torch to load) is imported when the name is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recgen.errors import NotLowered, ProofError, SpecError
    from recgen.loader import generate, load, load_file
    from recgen.spec import Spec, read, read_dict, read_text
    from recgen.spec.families import Family, load_families, register_family, unregister_family

__version__ = "0.1.0"

__all__ = [
    "Family",
    "NotLowered",
    "ProofError",
    "Spec",
    "SpecError",
    "__version__",
    "generate",
    "load",
    "load_families",
    "load_file",
    "read",
    "read_dict",
    "read_text",
    "register_family",
    "unregister_family",
]

_HOMES = {
    "Family": "recgen.spec.families",
    "NotLowered": "recgen.errors",
    "ProofError": "recgen.errors",
    "Spec": "recgen.spec",
    "SpecError": "recgen.errors",
    "generate": "recgen.loader",
    "load": "recgen.loader",
    "load_families": "recgen.spec.families",
    "load_file": "recgen.loader",
    "read": "recgen.spec",
    "read_dict": "recgen.spec",
    "read_text": "recgen.spec",
    "register_family": "recgen.spec.families",
    "unregister_family": "recgen.spec.families",
}


def __getattr__(name: str) -> Any:
    """Imports a public name from its home when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'recgen' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
