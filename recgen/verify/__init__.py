"""Verification of emitted modules: every form and backend against `naive` in float64, on inputs that users send.

report = verify_spec("gla", examples=50)      # or verify_module(module)
print(report.render())                        # worst errors, and the smallest failing input as a script
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .case import Case
    from .data import build
    from .driver import verify_module, verify_spec
    from .errors import compare
    from .profile import Profile, load_module
    from .reference import References
    from .report import Failure, Report, Row
    from .run import run_form, run_naive

_HOMES = {
    "Case": "case",
    "Failure": "report",
    "Profile": "profile",
    "References": "reference",
    "Report": "report",
    "Row": "report",
    "build": "data",
    "compare": "errors",
    "load_module": "profile",
    "run_form": "run",
    "run_naive": "run",
    "verify_module": "driver",
    "verify_spec": "driver",
}

__all__ = [
    "Case",
    "Failure",
    "Profile",
    "References",
    "Report",
    "Row",
    "build",
    "compare",
    "load_module",
    "run_form",
    "run_naive",
    "verify_module",
    "verify_spec",
]


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used: only the driver needs hypothesis."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value
