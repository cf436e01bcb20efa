"""The spec: YAML text → checked, frozen `Spec`; the expression language; decay families.

document   YAML text → nodes with positions        tokens, syntax   expression text → tree
shape      nodes → typed values                    expression       tree → sympy
tensors, decay, growth, roles, families            what the values mean
reader     all of it in order                      write            Spec → plain data → YAML
"""

from __future__ import annotations

from recgen.errors import Location, NotLowered, Problem, SpecError
from recgen.spec.families import Family, load_families, register_family, unregister_family
from recgen.spec.model import Decay, Expr, Normalizer, Readout, Spec, Tensor
from recgen.spec.reader import read, read_dict, read_text

__all__ = [
    "Decay",
    "Expr",
    "Family",
    "Location",
    "Normalizer",
    "NotLowered",
    "Problem",
    "Readout",
    "Spec",
    "SpecError",
    "Tensor",
    "load_families",
    "read",
    "read_dict",
    "read_text",
    "register_family",
    "unregister_family",
]
