"""The algebra stage as readable mathematics, as plain text and as LaTeX.

    equation, equation_lines, carry_equation   a node of a program; the comment beside the statement that computes it
    module_equations                           the header of an emitted module
    explain_spec, explain_derivation           a whole stage
"""
from __future__ import annotations

from .show.derivation import explain_derivation
from .show.header import module_equations
from .show.nodes import carry_equation, equation, equation_lines, shared_names
from .show.spec_page import explain_spec

__all__ = [
    "carry_equation",
    "equation",
    "equation_lines",
    "explain_derivation",
    "explain_spec",
    "module_equations",
    "shared_names",
]
