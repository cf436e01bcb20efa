"""What may stand beside an emitted module: its tests, which need no recgen, and its types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recgen.algebra.derive import Derivation
from recgen.plan.kernels import Plan

from .module import module_context
from .notes import Note
from .render import environment, formatted

SIZES = {"H": 2, "K": 6, "V": 5, "D": 6}
"""Sizes that the tests use: small, different, and even where channels turn in pairs."""


def test_text(derivation: Derivation, plan: Plan, stem: str) -> str:
    """The tests of the module in the file `stem`.py, for pytest."""
    context = module_context(derivation.spec, derivation.recurrence, plan, Note())
    sizes = {letter: SIZES[letter] for letter in context["sample_sizes"]}
    sizes |= {"M": 8} if "M" in context["param_size_args"] else {}
    states = tuple(rule.field for rule in derivation.recurrence.states)
    return _rendered("test.py.j2", context | {"stem": stem, "sizes": sizes, "state_gradients": states})


def stub_text(derivation: Derivation, plan: Plan) -> str:
    """The types of the module, as type checkers read them from a .pyi file."""
    context = module_context(derivation.spec, derivation.recurrence, plan, Note())
    return _rendered(
        "module.pyi.j2", context | {"modes": [form for form, _ in context["forms"]], "schedule_names": plan.schedules}
    )


def _rendered(template: str, context: Mapping[str, Any]) -> str:
    return formatted(environment().get_template(template).render(context), stub=template.endswith(".pyi.j2"))
