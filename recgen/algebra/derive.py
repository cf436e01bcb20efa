"""The derive stage: from a spec to everything that follows from its recurrence, proven.

recurrence      the one-step statement
bounds          the interval of the log-decay, declared or from interval analysis
factorisation   how pair weights are written where the decay varies inside a head, chosen from the bounds, or that
                there are none: time is scanned, or every token reads the total
program         the chunk program, or that of one token, and its adjoint
pairs           the program of all pairs at once, where the chunk program has no pairs: it reads the total
proof           that they are what the recurrence says
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from recgen.algebra import proof as proofs
from recgen.algebra.adjoint import adjoint
from recgen.algebra.bounds import Interval, bounds
from recgen.algebra.chunkwise import chunk_program, pair_program
from recgen.algebra.complex_values import split
from recgen.algebra.program import Program
from recgen.algebra.recurrence import Recurrence
from recgen.algebra.scan import token_program
from recgen.algebra.statement import recurrence
from recgen.spec.model import Spec

ROWS = 64
EXPONENT = 16.0  # largest exponent that a plain factor may reach over ROWS rows: e^16 < 10^7 keeps float32's digits


@dataclass(frozen=True)
class Derivation:
    """What the algebra found. `bounds` is None without decay, `proof` when none was asked for."""

    spec: Spec
    recurrence: Recurrence
    bounds: Interval | None
    factorisation: str
    program: Program
    adjoint: Program
    proof: proofs.Proof | None
    pairs: Program | None = None


def derive(spec: Spec, prove: bool = True) -> Derivation:
    """Derive and prove. Raises NotLowered for what cannot be derived yet, ProofError for what does not hold."""
    rec = recurrence(spec)
    # relative to a maximum, a decay is as strong as the next weight is large
    interval = Interval(-math.inf, 0.0) if rec.stabiliser else log_decay_bounds(spec)
    chosen = "scan" if rec.scans else factorisation(rec.structure, interval) if rec.causal else "total"
    program = token_program(rec) if rec.scans else chunk_program(rec, chosen)
    gradients = adjoint(program)
    pairs = None if rec.causal else pair_program(rec)
    proof = proofs.prove(rec, program, gradients, pairs=pairs) if prove else None
    return Derivation(spec, rec, interval, chosen, program, gradients, proof, pairs)


def log_decay_bounds(spec: Spec) -> Interval | None:
    """The interval of ℓ, or of its real part: what its expression can reach, within what the spec declares.

    None without decay. Raises ValueError when the expression's range is not known and none is declared.
    """
    if spec.decay.log.tree == 0:
        return None
    declared = Interval(*spec.decay.bounds) if spec.decay.bounds is not None else None
    try:
        found = bounds(split(spec.decay.log.tree)[0])
    except (ValueError, NotImplementedError):
        if declared is None:
            raise
        return declared
    return found if declared is None else Interval(max(found.lo, declared.lo), min(found.hi, declared.hi))


def factorisation(structure: str, interval: Interval | None) -> str:
    """How the pair weights of a decay along the axes `structure` are factored: "plain" or "tree".

    A decay of the whole head needs no factors. Otherwise the plain product e^(L_t) · e^(−L_i) is used only where its
    exponents stay small over a chunk, and the pair tree, whose factors never exceed 1, everywhere else.
    """
    if not structure or interval is None:
        return "plain"
    return "plain" if -interval.lo * ROWS <= EXPONENT else "tree"
