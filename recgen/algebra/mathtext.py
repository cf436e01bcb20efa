"""The algebra stage as readable mathematics, as plain text and as LaTeX.

equation, equation_lines, carry_equation   a node of a program; the comment beside the statement that computes it
module_equations                           the header of an emitted module
step_equations, hand_over_equation         one token, and what many of them do to the state
explain_spec, explain_derivation           a whole stage; `derivation` is the page that the latter prints
spec_in_latex, spec_in_markdown            a spec in a notebook
"""

from __future__ import annotations

from .show.derivation import derivation, explain_derivation
from .show.header import hand_over_equation, module_equations
from .show.nodes import carry_equation, equation, equation_lines, shared_names
from .show.notebook import spec_in_latex, spec_in_markdown
from .show.spec_page import explain_spec
from .show.step import step_equations

__all__ = [
    "carry_equation",
    "derivation",
    "equation",
    "equation_lines",
    "explain_derivation",
    "explain_spec",
    "hand_over_equation",
    "module_equations",
    "shared_names",
    "spec_in_latex",
    "spec_in_markdown",
    "step_equations",
]
