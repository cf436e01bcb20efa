"""A complex log-decay ℓ = a + iθ as a real recurrence, in a frame that turns with the position.

With n the position of token t, and S a complex state,

    S_t = e^{ℓ} S_{t-1} + key_t value_tᵀ,  y_t = Re(query_tᵀ S_t)     and     S_t = e^{iθn} R_t

give, because e^{iθn} e^{−iθ(n−1)} = e^{iθ},

    R_t = e^a R_{t-1} + (e^{−iθn} key_t) value_tᵀ,     y_t = Re((e^{iθn} query_t)ᵀ R_t) = ⟨e^{−iθn} query_t*, R_t⟩

where ⟨x, y⟩ = Re x · Re y + Im x · Im y. So R has a real decay, and its real and imaginary parts are features of an
ordinary state, twice as many as there are key channels: both of query* and key, turned by −θn. `complex_steps` takes
the first line as it stands, with complex numbers, for the proof.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy

from recgen.spec.model import Spec

from .complex_values import is_complex, split
from .widths import POSITION, Turn


@dataclass(frozen=True)
class ComplexStep:
    """The recurrence as it is written: log-decay, query and key are complex, one value per key channel."""

    log_decay: sympy.Expr
    query: sympy.Expr
    key: sympy.Expr


def complex_step(spec: Spec, query: sympy.Expr, key: sympy.Expr) -> ComplexStep | None:
    """None where the decay is real."""
    log = spec.decay.log.tree
    return ComplexStep(log, query, key) if is_complex(log) else None


def turned(step: ComplexStep) -> tuple[sympy.Expr, sympy.Expr]:
    """The features of query and key in the frame."""
    _, angle = split(step.log_decay)
    return Turn(sympy.conjugate(step.query), -angle, POSITION), Turn(step.key, -angle, POSITION)


def gaps(spec: Spec, moving: set[sympy.Symbol], weight: sympy.Expr) -> dict[str, bool]:
    """What is not lowered beside a complex decay, and whether the spec has it.

    moving: the symbols of the inputs. weight: the part of the key weight that varies along keys and values at once.
    """
    if not is_complex(spec.decay.log.tree):
        return {}
    _, angle = split(spec.decay.log.tree)
    maps = (spec.query_map.tree, spec.key_map.tree)
    return {
        "a complex decay whose angle changes from token to token": bool(angle.free_symbols & moving),
        "a feature map under a complex decay": any(not tree.is_Symbol for tree in maps),
        "a normalizer under a complex decay": spec.normalizer.kind != "none",
        "a readout before the update under a complex decay": spec.readout.kind == "exclusive",
        "a weight along keys and values under a complex decay": weight != 1,
        "a rotation beside a complex decay": spec.rotation is not None,
    }
