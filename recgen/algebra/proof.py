"""The proof that a chunk program is the recurrence, and its adjoint the derivative of the recurrence.

Both are interpreted exactly as they are, the nodes that are emitted, and compared with the recurrence unrolled token
by token. Short sequences are compared as Laurent polynomials in everything that enters, for every way of cutting them
into chunks; longer ones, over all levels of the pair tree, as residues at random points (see `exact`). The token
stage, feature maps and gates, enters with 50 decimals; its slopes are compared with numeric ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from recgen.algebra import complex_proof, precise
from recgen.algebra.calculus import derivative
from recgen.algebra.defined import proper_sizes
from recgen.algebra.exact import Domain, Residues
from recgen.algebra.interpret import Cut, Run, run
from recgen.algebra.laurent import Divisor, Laurent, Symbols
from recgen.algebra.program import Program
from recgen.algebra.recurrence import Recurrence, affine
from recgen.algebra.relative import relative_steps
from recgen.algebra.smooth import SIZES, SMOOTHER
from recgen.algebra.tokens import Array, AtZero
from recgen.algebra.trials import RESIDUES, Reference, Trial, feature_widths, standard_trials, token_trials, whole_sizes
from recgen.algebra.widths import is_wide
from recgen.errors import ProofError


@dataclass(frozen=True)
class Statement:
    """One thing that was shown: the claim, the method, and the sizes it was shown for."""

    claim: str
    method: str
    sizes: str

    def __str__(self) -> str:
        return f"{self.claim}\n  by {self.method}; {self.sizes}"


@dataclass(frozen=True)
class Proof:
    """What was shown of a recurrence, its program and its adjoint. It exists only when nothing failed."""

    statements: tuple[Statement, ...]

    @property
    def ok(self) -> bool:
        return bool(self.statements)

    def __str__(self) -> str:
        return "\n".join(map(str, self.statements))


def prove(
    rec: Recurrence,
    program: Program,
    adjoint: Program,
    trials: Sequence[Trial] | None = None,
    pairs: Program | None = None,
) -> Proof:
    """Compare a program and its adjoint with the recurrence. Raises ProofError at the first difference.

    pairs: the program of all pairs at once, where it is one of its own.
    """
    statements = [*unrolled_sums(rec), *frame(rec), *slopes(rec)]
    statements += (Statement(claim, "evaluation", "6 random points, 60 decimals") for claim in relative_steps(rec))
    trials = trials or (token_trials(rec, program) if rec.scans else standard_trials(rec, program))
    for trial in trials:
        statements += compare(rec, program, adjoint, trial)
        statements += composition(rec, program, adjoint, trial) if rec.scans else ()
        statements += all_pairs(rec, pairs, trial) if pairs is not None else ()
    return Proof((*statements, *defined_at_zero(rec, program, adjoint)))


def unrolled_sums(rec: Recurrence) -> Iterator[Statement]:
    """The closed form S_t = E_t S_0 + W_t, with E_t = Π e^ℓ and W_t = Σ (Π e^ℓ) write, steps as the recurrence does."""
    for rule in rec.states:
        step = affine(rule)
        decay, write = sympy.exp(step.log_decay), sympy.Mul(*step.write)
        initial, E, W = sympy.symbols("_initial _E _W", real=True)
        stepped = rule.update.xreplace({rule.symbol: E * initial + W})
        if sympy.expand(stepped - (decay * E * initial + decay * W + write)) != 0:
            raise ProofError(f"{rule.name}: the unrolled sum does not satisfy the one-step recurrence {rule.update}")
        if not rec.causal:
            total = f"{rule.name} = Σ_i {_product(step.write)}_i over all tokens i"
            yield Statement(total, "induction over t", "any T")
            continue
        weights = ("e^(ℓ_1+…+ℓ_t)", "e^(ℓ_(i+1)+…+ℓ_t) ") if step.log_decay != 0 else ("1", "")
        yield Statement(
            f"{rule.name}_t = {weights[0]}·{rule.name}_0 + Σ_(i≤t) {weights[1]}{_product(step.write)}_i",
            "induction over t",
            "any T",
        )


def frame(rec: Recurrence) -> Iterator[Statement]:
    """A complex decay became a real one."""
    if rec.complex_step is not None:
        complex_proof.prove_frame(rec)
        yield Statement(complex_proof.CLAIM, complex_proof.METHOD, complex_proof.SIZES)


def _product(factors: Sequence[sympy.Expr]) -> str:
    return "·".join(map(str, factors))


def slopes(rec: Recurrence) -> Iterator[Statement]:
    """The derivative of every quantity by every input and parameter, against central differences."""
    found = []
    for name, q in rec.quantities.items():
        proper = proper_sizes([q.expr])
        for s in sorted(q.expr.free_symbols if not is_wide(q.expr) else (), key=str):
            if s.name in rec.tensors and s.is_integer is None:
                found.append(f"∂{name}/∂{s}")
                for seed, size in enumerate(SIZES):
                    at = precise.point(q.expr.free_symbols, size, seed)
                    _slope_is_right(q.expr, s, at | proper, found[-1])
    if found:
        yield Statement(
            f"the derivatives {', '.join(found)}",
            "central differences with step 10^-45",
            "4 random points, 40 decimals",
        )


def _slope_is_right(expr: sympy.Expr, symbol: sympy.Symbol, at: precise.Point, what: str) -> None:
    try:
        exact, numeric = precise.value(derivative(expr, symbol), at), precise.slope(expr, symbol, at)
    except ArithmeticError as error:
        where = ", ".join(f"{s} = {float(x.real):.6g}" for s, x in at.items())
        raise ProofError(f"{what} is not finite at {where} ({type(error).__name__}): write it smoothly") from None
    if abs(exact - numeric) > 1e-40 * (1 + abs(numeric)):
        where = ", ".join(f"{s} = {float(x.real):.6g}" for s, x in at.items())
        raise ProofError(f"{what} is {float(exact.real):.15g} at {where}, and should be {float(numeric.real):.15g}")


def compare(rec: Recurrence, program: Program, adjoint: Program, trial: Trial) -> Iterator[Statement]:
    """The program and its adjoint against the recurrence, at every cut of a trial."""
    show = getattr(trial.domain, "show", str)
    for cut in trial.cuts:
        reference = trial.reference(rec, cut.length)
        forward, backward = _both(program, adjoint, trial, cut, reference)
        _same("output", forward.outputs, reference.outputs, cut, show)
        _same("final state", forward.ends, reference.final, cut, show)
        _same("gradient", backward.outputs, reference.d_inputs, cut, show)
        _same("gradient of the initial state", backward.ends, reference.d_initial, cut, show)
        _divides_by_nothing_new(trial.domain, reference.divisors, cut)
    yield from _compared(rec, trial)
    plain = rec.log_decays and rec.stabiliser is None
    if isinstance(trial.domain, Symbols) and plain and not trial.domain.grows:
        yield Statement(
            "every exponent is a sum of log-decays, none counted negatively: no exponential exceeds 1",
            trial.method,
            trial.sizes,
        )


def _compared(rec: Recurrence, trial: Trial) -> Iterator[Statement]:
    """What `compare` has shown when it found no difference."""
    what = "program of a token" if rec.scans else "chunk program"
    results, ends = (
        ("outputs and final states", ", parameter and initial state") if rec.causal else ("outputs", " and parameter")
    )
    yield Statement(f"the {what} gives the {results} of the recurrence", trial.method, trial.sizes)
    yield Statement(f"the adjoint gives the derivative of {results} by every input{ends}", trial.method, trial.sizes)


def all_pairs(rec: Recurrence, pairs: Program, trial: Trial) -> Iterator[Statement]:
    """The program of all pairs against the recurrence, for every length of a trial."""
    found = [Cut(max(length, 1), (length,)) for length in dict.fromkeys(cut.length for cut in trial.cuts)]
    show = getattr(trial.domain, "show", str)
    known = frozenset(trial.domain.divisors) if isinstance(trial.domain, Symbols) else frozenset()
    for cut in found:
        try:
            outputs = run(pairs, trial.draw, trial.domain, cut, {}).outputs
        except (ValueError, ArithmeticError, TypeError) as error:
            raise ProofError(f"the program of all pairs has no value at {cut}: {error}") from error
        _same("output of all pairs", outputs, trial.reference(rec, cut.length).outputs, cut, show)
        _divides_by_nothing_new(trial.domain, known, cut)
    yield Statement(
        "all pairs of tokens at once give the outputs of the recurrence",
        trial.method,
        f"T = {', '.join(str(cut.length) for cut in found)}",
    )


def _both(program: Program, adjoint: Program, trial: Trial, cut: Cut, reference: Reference) -> tuple[Run, Run]:
    try:
        forward = run(program, trial.draw, trial.domain, cut, reference.initial)
        return forward, run(adjoint, trial.draw, trial.domain, cut, reference.d_final, forward.starts)
    except (ValueError, ArithmeticError, TypeError) as error:
        raise ProofError(f"the program has no value at {cut}: {str(error) or type(error).__name__}") from error
    except KeyError as error:
        raise ProofError(f"the program starts from {error}, which the recurrence does not carry, at {cut}") from error


def composition(rec: Recurrence, program: Program, adjoint: Program, trial: Trial) -> Iterator[Statement]:
    """Tokens taken together are affine in what is carried: e^(sum of ℓ) times it, and what they give from nothing.

    That is what the split of time into chunks rests on, forwards and backwards. The sum of ℓ is the recurrence's own.
    """
    show = getattr(trial.domain, "show", str)
    for cut in trial.cuts:
        reference = trial.reference(rec, cut.length)
        forward, backward = _both(program, adjoint, trial, cut, reference)
        nothing = {name: np.full(x.shape, 0, dtype=object) for name, x in reference.initial.items()}
        alone = run(program, trial.draw, trial.domain, cut, nothing)
        gone = run(adjoint, trial.draw, trial.domain, cut, nothing, forward.starts)
        for what, whole, part, start in (
            ("end", forward, alone, reference.initial),
            ("gradient at the start", backward, gone, reference.d_final),
        ):
            composed = {name: reference.decay[name] * start[name] + x for name, x in part.ends.items()}
            _same(f"{what} of tokens taken together", whole.ends, composed, cut, show)
    yield Statement(
        "tokens taken together hand on e^(sum of log-decays) of what they are given, and what they give "
        "from nothing; their gradients likewise, backwards",
        trial.method,
        trial.sizes,
    )


def defined_at_zero(rec: Recurrence, program: Program, adjoint: Program) -> Iterator[Statement]:
    """Program and adjoint have values where all inputs are 0, if the recurrence has."""
    cut = Cut(1, (1, 1, 1)) if rec.scans else Cut(2, (2, 1))
    trial = Trial(RESIDUES, Residues(), feature_widths(rec, program, 1, widest=1), [cut], AtZero, whole_sizes(rec))
    try:
        reference = trial.reference(rec, 3)
    except (ValueError, ArithmeticError):
        return
    try:
        _both(program, adjoint, trial, trial.cuts[0], reference)
    except ProofError as error:
        found = f"outputs have values where all inputs are 0, and gradients have none ({error})"
        raise ProofError(f"{found}: {SMOOTHER}") from None
    yield Statement("outputs and gradients exist where all inputs are 0", "evaluation there", trial.sizes)


def _same(
    what: str, given: Mapping[str, Array], needed: Mapping[str, Array], cut: Cut, show: Callable[[Any], str]
) -> None:
    if set(given) != set(needed):
        raise ProofError(f"{what}: there are {sorted(given)}, and there should be {sorted(needed)}")
    for name, right in needed.items():
        if given[name].shape != right.shape:
            raise ProofError(f"{what} {name} has the shape {given[name].shape}, it should be {right.shape}, at {cut}")
        for index in np.ndindex(right.shape):
            if right[index] != given[name][index]:
                raise ProofError(
                    f"{what} {name}[{', '.join(map(str, index))}] differs at {cut}\n"
                    f"  program:    {show(given[name][index])}\n  recurrence: {show(right[index])}"
                )


def _divides_by_nothing_new(domain: Domain, allowed: frozenset[Divisor], cut: Cut) -> None:
    """A program that divides by a value that may be 0, and that the recurrence does not divide by, is refused."""
    if isinstance(domain, Symbols):
        for divisor in sorted(domain.divisors - allowed, key=len):
            raise ProofError(
                f"the program divides by {domain.show(Laurent(dict(divisor)))}, which the recurrence does not, at {cut}"
            )
